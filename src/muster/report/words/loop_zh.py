"""Chinese: the report of a loop."""

from __future__ import annotations

TEXTS = {
    "loop.title": "{campaign} 的自动轮次：{rounds}，{variants}",
    "loop.unfinished": "尚未完成：{n} 个运行中已结束 {k} 个",
    "count.loop_round": "{n} 轮",
    "count.loop_variant": "{n} 个变体",
    "count.loop_seed": "{n} 个种子",
    "loop.higher": "越高越好",
    "loop.lower": "越低越好",
    # bottom line
    "loop.best": "**目前最好：{name}**（第 {round} 轮）：{by} = {score}；{better}。",
    "loop.no_rank": "**无法指出最好的变体**：没有声明排序依据。用 `keep: {{top: 4, by: "
    'last("..."), better: higher}}` 声明。',
    "loop.no_score": "**还没有变体得到分数**（依据 {by}）。",
    "loop.no_score_why": "**没有变体得到分数**（依据 {by}）：{why}。",
    "loop.score": "{mean} ± {sd}（均值 ± 标准差，{seeds}）",
    "loop.score_one": "{mean}（单个种子）",
    "loop.beyond": "与其起点配置 {base}（{score}）相比好 {gain}，95 % 区间 {interval}，p = {p}（Welch）："
    "超出种子噪声。",
    "loop.within": "与其起点配置 {base}（{score}）相比好 {gain}，95 % 区间 {interval}，p = {p}（Welch）："
    "可能只是种子噪声。",
    "loop.no_spread": "与其起点配置 {base}（{score}）相比好 {gain}；各种子之间毫无差异，这很少是真的：命令是否用了 "
    "`{{seed}}`？",
    "loop.one_seed": "与其起点配置 {base}（{score}）相比好 {gain}。只有一个种子：无法把提升与噪声区分开；"
    "设置 `repeats: 3` 即可看出。",
    "loop.is_base": "它是循环开始时的配置之一：没有变体在种子噪声之外更好。",
    "loop.is_base_one": "它是循环开始时的配置之一：没有变体得分更好。只有一个种子：无法把差异与噪声区分开；"
    "设置 `repeats: 3` 即可看出。",
    "loop.no_base": "它的起点配置没有分数，无从比较。",
    "loop.top": "{name} 的均值更好（{score}），但没有超出种子噪声。",
    "loop.top_few": "{name} 的均值更好（{score}），但两个种子几乎无法把提升与噪声区分开；"
    "设置 `repeats: 3` 或更多即可。",
    "loop.chosen": "它是从 {n} 个有分数的变体中挑出来的，所以这个分数偏乐观：展示之前请换种子重跑。",
    "loop.died": "它有 {n} 个运行没有正常结束：分数依据的是此前已记录的数据。",
    "loop.stopped": "**循环已停止**：{why}。",
    "loop.next_running": "**第 {round} 轮（共 {most} 轮）正在进行**：{n} 个运行中已结束 {k} 个。",
    "loop.next_ready": "**接下来是第 {round} 轮（共 {most} 轮）**：{variants}；{how}。",
    "loop.next_due": "**第 {round} 轮（共 {most} 轮）已结束**：即将提出下一轮，或说明为何没有下一轮；{how}。",
    "loop.how_busy": "无需人工操作",
    "loop.how_idle": "用 `muster loop run` 继续",
    "loop.how_held": "campaign 已暂停：先 `muster release`，再 `muster loop run`",
    "loop.how_down": "campaign 已停下：用 `muster loop run` 继续",
    "loop.trouble": "**{all} 个运行中有 {n} 个失败或没有留下历史**，循环没有因此停下：",
    "loop.trouble_all": "**全部 {n} 个运行都失败或没有留下历史**：",
    "loop.trouble_run": "{cell}：{verdict}：{why}",
    "loop.fine": "没有运行失败，每个都留下了历史。",
    "loop.fine_so_far": "到目前为止没有运行失败。",
    "loop.left_none": "没有留下可读的历史",
    "loop.no_history": "没有可读的历史：{why}",
    # stop conditions, as they are recorded
    "loop.stop.rounds": "全部 {n} 轮已完成",
    "loop.stop.one": "唯一的一轮已完成",
    "loop.stop.target": "已达到目标：{name} 满足 {target}",
    "loop.stop.no_gain": "连续 {n} 轮没有提升：按 {by} 最好的仍是 {name}（{score}）",
    "loop.stop.open": "第 {round} 轮尚未结束，{n} 个运行中有 {k} 个还没有结果：{why}",
    "loop.stop.none": "没有新的提案，原因：{why}",
    # runs
    "loop.runs": "运行",
    "loop.run": "运行",
    "loop.round": "轮",
    "loop.verdict": "判定",
    "loop.value": "分数",
    "loop.parent": "来自",
    "loop.reason": "为何尝试",
    "loop.edits": "改动",
    "loop.config": "配置",
    "loop.output": "输出",
    "loop.wandb": "W&B",
    "loop.base": "起点",
    "loop.gain": "相对来源 {gain}",
    "loop.runs_note": "分数：{by}，{better}。″：同上一行。",
    # lineage
    "loop.lineage": "谱系",
    "loop.lineage_note": "粗框：目前最好。▲ 比来源好，▼ 比来源差。虚线：没有分数。",
    "loop.lineage_large": "{n} 个变体太多，文中的图放不下：见 lineage.svg。",
    "loop.picture": "{campaign} 的谱系",
    "loop.not_yet": "尚未结束",
    "loop.without": "没有分数",
    "loop.unranked": "没有排序依据",
    # best so far
    "loop.curve": "目前最好",
    "loop.caption": "每个点是一个运行，依据 {by}（{better}）；带误差线的标记是一个变体各种子的均值与标准差。"
    "折线是每轮之后最好的变体：只有超出种子噪声的更好变体才会取代它。",
    "loop.caption_one": "每个点是一个运行，依据 {by}（{better}）。折线是每轮之后最好的变体。"
    "每个变体只有一个种子：无法把提升与噪声区分开。",
    "loop.undrawn": "未能画出：{why}。",
    # rules
    "loop.rules": "哪些规则有用",
    "loop.rule": "规则",
    "loop.made": "产生的变体",
    "loop.scored": "有分数",
    "loop.won": "比来源好",
    "loop.mean_gain": "平均提升",
    "loop.never": "从未触发",
    "loop.rules_note": "提升：变体的分数减去其来源的分数，依据 {by}；大于零为更好。方括号内是平均提升的 95 % t 区间，"
    "至少三个变体才给出。",
    "loop.noise": "同一变体的各种子相差 {sd}（合并标准差）：一对变体之间的提升本身就有 {pair} 的噪声。",
    "loop.noise_one": "每个变体只有一个种子：每个提升都含两个种子的噪声，其大小无从得知；设置 `repeats: 3` 即可看出。",
    "loop.rules_unranked": "没有排序依据，无法计算提升。",
    "loop.rules_none": "没有声明规则，也没有别的来源产生变体。",
    # keys
    "loop.logged": "运行记录的指标",
    "loop.logged_note": "排序和规则用到的指标在前。—：没有记录；NaN 和 inf：运行写下的原样。",
    "loop.more_keys": "另有 {n} 个指标在 summary.json 中。",
    "loop.nothing_logged": "什么都没有记录。",
    "loop.first": "首值",
    "loop.last": "末值",
    "loop.best_value": "最佳",
    "loop.range": "最小 … 最大",
    "loop.delta": "变化",
    "loop.percent": "%",
    "loop.nans": "{all} 个值中有 {n} 个不是有限数",
}
