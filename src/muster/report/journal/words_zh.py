"""Chinese: the journal."""

from __future__ import annotations

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
    "comma": "、",
    "between": "",
    "and_more": "{items}等，另有 {n} 项",
    # -- sections
    "section.start": "启动",
    "section.observations": "观察",
    "section.observations_after": "观察（承接 {last}）",
    "section.plan": "实验计划",
    "section.findings": "观察记录",
    "section.record": "实验记录",
    "section.learning": "Learning / 下一步",
    # -- a new one
    "new.after": "{date} ({zone})：承接 {last} 的 Learning/下一步：{told}。",
    "new.first": "{date} ({zone})：本目录的第一份日志。",
    "new.counts.fresh": "新要点 {n} 个",
    "new.counts.carried": "沿用 {n} 个",
    "new.counts.done": "已完成 {n} 个",
    "new.counts.dropped": "放弃 {n} 个",
    "new.counts.none": "没有未了结的要点",
    "new.goal": "目标：",
    "new.missing": "本目录中没有 {names}。",
    "carried": "（已沿用 {n} 次，自 v{since} 起）",
    "hint.plan": "[ ] 未了结　[x] 已完成　[-] 放弃：在末尾写（放弃：原因）。编号始终不变；"
    "既未完成也未放弃的，下一版自动沿用。",
    "hint.observations": "上一轮运行说明了什么",
    "hint.findings": "本版运行说明了什么；`muster journal audit` 会把其中的数字与 artifacts 核对",
    "hint.record": "`muster journal fill --run 目录`（或 cell）把命令、表格和图写在这里；生成块以外的文字不会被改动",
    "hint.learning": "编号列表：每个要点都会成为下一版的观察和计划",
}
