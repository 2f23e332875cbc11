"""Chinese: the code that cells ran.

Chinese: the decision report.
"""

from __future__ import annotations

CODE_TEXTS_ZH = {
    "code.changed": "提交 {commit}，另有 {files}未提交的改动（{names}）",
    "code.diff": "提交 {commit}，另有未提交的改动（diff {dirty}）",
    "code.untracked": "{file} 未纳入版本管理",
    "code.unknown": "未知：{why}",
    "code.slow": "git 在 {n} 秒内没有应答",
    "code.unreadable": "git 未能给出改动内容",
    "code.no_repository": "未纳入版本管理",
    "code.no_commit": "所在仓库还没有任何提交",
    "code.unrecorded": "没有记录",
    "code.hashed": "{state}；{files}的源码已记录哈希",
    "code.states": "{n} 种状态：{states}",
    "code.not_yet": "尚不可知",
    "count.code_file": "{n} 个文件",
}

DECISION_TEXTS_ZH = {
    "decision.title": "决策报告：{campaign}",
    "decision.made": "{at} · Muster {version} · 代码 {code} · {folder}",
    "decision.commits": "{n} 个提交：{commits}",
    "decision.code_known": "{code}（{n} 个单元中有 {k} 个已知）",
    # verdict
    "verdict.supported": "推荐 {config}（RECOMMEND）：在 {column} 上优于{baseline}，高出 {gain}；按预先声明的检验，差"
    "异显著（{p}，阈值 {threshold}）{limit}。",
    "verdict.keeps": "，且满足约束 {rule}（{cost}）",
    "candidate.feasible": "可行候选",
    "candidate.any": "候选配置",
    "baseline.itself": "基线",
    "baseline.named": "基线（{name}）",
    "verdict.baseline_infeasible": "推荐 {config}（RECOMMEND）：以 {level}% 的置信度，{baseline}违反约束 {rule}（"
    "{broken}），而 {config} 满足约束（{kept}）。{price}",
    "verdict.inside_delta": "等效（EQUIVALENT）：在 {column} 上，每个{candidate}（{configs}）都与{baseline}足够接近："
    "各差值的 {level}% 置信区间都落在 ±{delta} 以内{unsafe}。",
    "verdict.none_left": "保留基线（KEEP_BASELINE）：没有候选配置可以取代{baseline}：{reasons}{limit}。",
    "verdict.limit_open": "；但基线满足约束 {rule} 也未得到证明",
    "out.worse": "在 {column} 上显著更差的有 {configs}",
    "out.infeasible": "违反约束 {rule} 的有 {configs}",
    "verdict.not_supported": "证据不足（NOT_ENOUGH_EVIDENCE）：在 {column} 上，没有{candidate}显著优于基线 {baseline}"
    "（最接近的是 {config}：增益 {gain}，{p}，阈值 {threshold}）{unsafe}；不显著不等于相同。",
    "verdict.unsafe": "，而基线本身违反约束 {rule}",
    "verdict.no_look": "目前的种子数不是声明过的分析时点，alpha 不涵盖这一次。",
    "verdict.proxy": "请注意，{split} 是代理划分：{note}。",
    "cost.at_most": "均值 {mean}，置信上界 {bound}",
    "cost.at_least": "均值 {mean}，置信下界 {bound}",
    "price.loss": "代价：{column} {way} {by}（差值的 {level}% 置信区间 {interval}）；损失至多 {loss}，小于声明的 "
    "delta = {delta}。",
    "price.gain": "在 {column} 上没有代价：{way} {by}（差值的 {level}% 置信区间 {interval}）；即使有损失也至多 {loss}"
    "，小于声明的 delta = {delta}。",
    "way.lower": "低",
    "way.higher": "高",
    "verdict.all_worse": "证据不足（NOT_ENOUGH_EVIDENCE）：在 {column} 上，每个{candidate}都显著差于基线 {baseline}（"
    "{configs}），因此都不推荐{unsafe}。",
    "verdict.no_spread": "证据不足（NOT_ENOUGH_EVIDENCE）：在 {column} 上，各种子的结果完全相同，无法进行声明的检验（"
    "最接近的是 {config}：增益 {gain}）{unsafe}。",
    "verdict.none_feasible": "证据不足（NOT_ENOUGH_EVIDENCE）：没有候选配置被证明满足约束 {rule}（{standings}），因此"
    "都不能推荐。",
    "verdict.nothing_to_compare": "证据不足（NOT_ENOUGH_EVIDENCE）：无从比较，基线 {baseline} 和至少一个候选配置须在 "
    "{column} 上有结果。",
    "verdict.too_few_seeds": "证据不足（NOT_ENOUGH_EVIDENCE）：每个配置只有 {seeds}，少于 {least} 个时不作推荐。",
    "verdict.too_few_costs": "证据不足（NOT_ENOUGH_EVIDENCE）：在 {column} 上，每个配置只有 {seeds}，少于 {least} 个时"
    "不作推荐。",
    "verdict.missing": "不完整（INCOMPLETE）：{missing}（应有结果的单元已完成 {k}/{n}），因此不下结论：{cells}。",
    "verdict.missing_cell": "{cell}（{state}：{reason}）",
    "verdict.flags": "无效（INVALID）：这不是结果；{errors}：{flags}。",
    "verdict.more_flags": "{first}；另有 {n} 条",
    "verdict.undeclared": "不下结论：运行之前没有声明判定程序（campaign.yaml 中的 decision:），事后也就不作判定。",
    "gain": "{gain}（{level}% 置信区间 {interval}）",
    "gain.inline": "{gain}，{level}% 置信区间 {interval}",
    "gain.no_interval": "{gain}，无置信区间",
    "p.equals": "Welch p = {p}",
    "p.below": "Welch p < {p}",
    "p.none": "各种子的结果完全相同，无 Welch p",
    "fit.question": "证据链是否足以支撑决策？",
    "fit.RECOMMEND": "是，但以所声明的限制为前提。",
    "fit.EQUIVALENT": "是，但以所声明的限制为前提。",
    "fit.KEEP_BASELINE": "是，但以所声明的限制为前提：试过的配置都不能取代基线。",
    "fit.NOT_ENOUGH_EVIDENCE": "否：现有证据还撑不起一个决策。",
    "fit.INCOMPLETE": "否：实验矩阵有缺口。",
    "fit.INVALID": "否：这些数字不构成结果。",
    "fit.undeclared": "否：没有声明判定程序，这些表只作描述，不能用来决策。",
    "fit.no_look": "否：这不是声明过的分析时点，alpha 已由声明的各次分析分摊。",
    # sections
    "section.rests": "结论依据",
    "section.matrix": "实验矩阵",
    "section.table": "关键指标表",
    "section.compare": "与基线的比较",
    "section.safety": "安全性",
    "section.flags": "警示",
    "section.change": "什么会改变结论",
    "section.next": "最省钱的下一步",
    "section.declared": "声明：判定程序、代理与限制",
    "section.figures": "图",
    "section.evidence": "证据链",
    "invalid.caution": "无效（INVALID）：以下数字供查错，不可引用。",
    # seeds
    "seeds.none": "至少有一个配置在 {column} 上没有结果，无法判定。",
    "seeds.single": "每个配置 {seeds}：单次运行，看不出离散度，也无从比较。",
    "seeds.smoke": "每个配置 {seeds}：仅为冒烟测试，只能说明流程跑得通，不能说明哪个配置更好。",
    "seeds.preliminary": "每个配置 {seeds}：仅为初步结果，不作排名。",
    "seeds.declared": "每个配置 {seeds}；不显著不等于相同。",
    "seeds.thumb": "每个配置 {seeds}：只有达到 {sd} 个标准差的差异才看得出来；不显著不等于相同（单次比较，alpha = 0.05"
    "，功效 0.8）。",
    "seeds.range": "{low} 到 {high} 个训练种子",
    "seeds.unequal": "各配置在 {column} 上有 {low} 到 {high} 个种子不等；下一句就最少的情形而言。",
    "seeds.unequal_no_plan": "各配置有 {low} 到 {high} 个种子不等；下一句就最少的情形而言。",
    "seeds.no_look": "每个配置 {seeds}：这不是声明过的分析时点（looks：{looks} 个种子）。alpha = {alpha} 由声明的各次"
    "分析分摊，不涵盖额外的一次。",
    "seeds.detectable": "每个配置 {n} 个种子时，按声明的 alpha、分析次数和候选数，{column} 上 {difference} 的真实差异"
    "（{ratio} 个标准差）能以 {power}% 的功效检出（全部配置合并的标准差为 {seen}，为稳妥起见取 {sd}）；更小的差异更容"
    "易漏检。",
    "seeds.replicate": "重复单位是训练种子。每个配置、种子、数据划分内的各回合先取平均，回合数从不计入 n。",
    # comparison
    "compare.difference": "{column} 之差",
    "compare.p": "p（Welch）",
    "compare.threshold": "阈值（Holm）",
    "compare.exact": "p（精确置换检验）",
    "compare.g": "g（Hedges）",
    "compare.improvement": "改进概率",
    "compare.reading": "判读",
    "compare.evidence": "证据",
    "compare.caption": "各候选与基线 {baseline}（k/N = {seeds}）在 {column} 上的比较（候选 − 基线）",
    "reading.supported": "显著更好",
    "reading.worse": "显著更差",
    "reading.vetoed": "不显著：精确检验不支持",
    "reading.open": "校正后不显著",
    "reading.open_better": "约好 {by}，校正后不显著",
    "reading.open_worse": "约差 {by}，校正后不显著",
    "reading.equal": "足够接近：在 ±{delta} 以内",
    "reading.no_loss": "可以排除 {delta} 及以上的损失",
    "reading.unjudged": "不作判断",
    "reading.few": "不作判断：种子少于 {least} 个",
    "exact.agrees": "{p}，一致",
    "exact.vetoes": "{p}，否决",
    "exact.informs": "{p}，仅供参考",
    "compare.sentence": "{config} 与基线 {baseline} 相比，{column} 之差为 {difference}；{p}，阈值 {threshold}："
    "{reading}。",
    "compare.note_test": "Welch t 检验，双侧；对 {candidates}作 Holm 校正；alpha = {alpha}，按 {looks}均分。置信区间水"
    "平 {level}%。",
    "compare.note_exact_informs": "精确置换检验只要达得到阈值，就必须与 Welch 检验一致。{n} 对 {m} 个种子时，它能达到"
    "的最小 p 为 {least}，而最严的阈值为 {strictest}：此处仅供参考，不具否决权。",
    "compare.note_exact_vetoes": "精确置换检验只要达得到阈值，就必须与 Welch 检验一致。{n} 对 {m} 个种子时，它能达到的"
    "最小 p 为 {least}，而最严的阈值为 {strictest}：此处具有否决权。",
    "compare.note_intervals": "各置信区间单独成立，未作 Holm 校正，也未按分析次数均分；检验更严，因此区间不含 0 时差异"
    "也可能不显著。",
    "choice.best_mean": "{rivals} 同样可选：{config} 在 {column} 上的均值最好，但它们之间没有相互比较。",
    "compare.note_size": "g：以合并标准差为单位的差异。改进概率：任取候选与基线的各一个种子，候选更好的比例，相等计一"
    "半。",
    "compare.none": "{column} 上无可比较的结果。",
    "compare.no_plan": "未声明基线，不作比较。",
    "compare.others": "其他各列：与基线 {baseline} 之差及 Welch 95% 置信区间，仅为估计值",
    # safety
    "safety.none": "未声明约束，因此不对安全性作任何说明。",
    "safety.caption": "均值是否满足约束 {rule}",
    "safety.standing": "判定",
    "safety.mean": "均值",
    "safety.lower": "下界",
    "safety.upper": "上界",
    "safety.keep": "满足的种子",
    "safety.share": "达标比例的 95% 置信下界",
    "safety.worst": "最差种子",
    "safety.worst_seed": "{value}（种子 {seed}）",
    "safety.note_bounds": "均值的界为单侧置信界，对 {candidates}和 {looks}合计的置信度为 {level}%（候选配置的每个界为 "
    "{each}%）。可行与不可行须由它证明；两者都证明不了即为未定。",
    "safety.note_lognormal": "{configs}：数值全为正，每个界取 Student t 与对数正态两种界中较宽的一个。",
    "safety.note_t": "{configs}：数值有正有负，用 Student t 界。",
    "safety.note_cap": "{configs}：有为 0 的代价，或各种子的结果完全相同，未见到的部分只能由声明的上限 {cap}（cap）约"
    "束：这么多种子排除不了的那部分比例按 cap 计，其余按所见最差的种子计。",
    "safety.note_no_cap": "{configs}：有为 0 的代价，或各种子的结果完全相同，反映不出偶发的坏结果。没有声明上限（约束"
    "旁的 cap:），就无法证明可行。",
    "safety.note_over_cap": "{configs}：有数值超出了声明的上限 {cap}（cap），该上限证明不了什么。请更正约束旁的 cap:。",
    "safety.note_share": "达标比例的 95% 置信下界：在所有可能训练的种子中，满足约束的比例不低于该值（Clopper–Pearson，"
    "单侧）。5/5 达标也排除不了至多 45% 的种子不达标。",
    "safety.note_skewed": "代价的分布是偏斜的：均值和置信界反映不出偶发的极大值，请同时看最差种子。",
    "safety.note_skewed_min": "这类数值的分布往往偏斜：均值和置信界反映不出偶发的极小值，请同时看最差种子。",
    "safety.sentence": "{config} 对约束 {rule} 的判定为{standing}：均值 {mean}，单侧置信界为 {lower} 和 {upper}；{n} "
    "个种子中 {keep} 个满足{share}；最差种子 {worst}。",
    "safety.proves": "，以 95% 的置信度只能说明达标比例不低于 {share}%，排除不了至多 {fail}% 的种子不达标",
    "safety.sentence_few": "{config} 对约束 {rule} 的判定为{standing}：{n} 个种子中 {keep} 个满足；不足两个种子，没有"
    "置信界。",
    "standing.FEASIBLE": "可行",
    "standing.INFEASIBLE": "不可行",
    "standing.UNDETERMINED": "未定",
    "dominates.yes": "{config} 全面优于基线 {baseline}：在 {column} 和 {limit} 上都更好，两项差异都显著。",
    "dominates.score": "{config} 没有同时改善得分和代价：在 {column} 上显著优于基线 {baseline}，但在 {limit} 上的改进"
    "不显著（差值 {difference}）。",
    "dominates.cost": "{config} 没有同时改善得分和代价：在 {limit} 上显著优于基线 {baseline}，但在 {column} 上的改进不"
    "显著（差值 {difference}）。",
    "dominates.neither": "{configs}：与基线 {baseline} 相比，{column} 和 {limit} 上的改进都不显著。",
    "dominates.few": "种子少于 {least} 个，不判断 {configs} 是否全面优于基线 {baseline}。",
    "dominates.not_judged": "是否全面优于基线不作判断：没有结论可以依托。",
    # flags
    "flags.none": "没有警示。",
    "flags.kind": "**{level}** `{code}`：{meaning}",
    "flags.cells": "涉及单元：{cells}。",
    "flags.more": "另有 {n} 条 {code}，全部见决策报告。",
    # what would change it
    "change.missing": "补齐缺失的单元。补齐之后，按原样执行声明的判定程序。",
    "change.flags": "消除 ERROR 级警示背后的原因。在此之前再加种子，只会在可能有错的数字上继续累加。",
    "change.undeclared": "在后续种子运行之前声明判定程序，并只用那些种子判定。现在才声明，等于看着这些数字挑程序。",
    "change.p": "{config}：{p}，阈值 {threshold}。",
    "left_out.holds": "任去掉一个种子，此项仍成立：最坏时为 {worst}（去掉 {whose} 的种子 {seed}）。",
    "left_out.one": "去掉 {whose} 的种子 {seed}，此项就不成立（{worst}）；去掉其他任何一个种子仍成立。",
    "left_out.several": "有 {k} 个种子，去掉其中任何一个，此项就不成立；最坏的是 {whose} 的种子 {seed}（{worst}）。",
    "left_out.never": "少一个种子，此项就无法证明，去掉哪一个都一样（最坏时为 {worst}：去掉 {whose} 的种子 {seed}）。",
    "change.room": "{config}：其 {column} 均值的置信界为 {bound}，约束为 {limit}。该界一旦越过约束，它就不再可行。",
    "change.baseline": "{config}：其 {column} 均值的置信界为 {bound}，约束为 {limit}。该界一旦落入约束之内，基线就不再"
    "是不可行，届时 {chosen} 必须更好，而不能只是不差。",
    "change.out": "{config}：其 {column} 均值的置信界为 {bound}，约束为 {limit}。该界一旦落入约束之内，它就不再是不可"
    "行。",
    "change.loss": "{config}：在 {column} 上的损失至多 {loss}。一旦达到 {delta}，就不再推荐。",
    "change.widest": "差异的置信区间以 {config} 的最宽，为 {interval}，在 ±{delta} 以内。若 delta 不大于 {need}，就不"
    "再是等效。",
    "change.recommend": "要推荐 {config}，须有增益且 Welch p 不高于 {threshold}；目前增益为 {gain}，{p}。",
    "change.unsafe": "{config} 对约束 {rule} 不可行：{column} 再好也不推荐。",
    "change.open_cost": "{config} 对约束 {rule} 未定：其均值的置信界为 {lower} 和 {upper}。整个范围都在约束之内才算可"
    "行。",
    "change.few": "{config} 对约束 {rule} 未定：不足两个种子，没有置信界。",
    "change.no_cap": "{config} 对约束 {rule} 未定：有为 0 的代价，或各种子的结果完全相同，只有声明上限（约束旁的 cap:"
    "）才能证明可行。",
    "change.over_cap": "{config} 对约束 {rule} 未定：有数值超出了声明的上限。请更正约束旁的 cap:。",
    "change.worse": "{config} 在 {column} 上显著差于基线 {baseline}：{difference}；再加种子预计也不会翻转。",
    "change.equivalent": "要判为等效，每个{candidate}的 {level}% 置信区间都须在 ±{delta} 以内。目前最宽的是 {config} "
    "的 {interval}。",
    "change.no_delta": "没有声明 delta，因此不可能判为等效。",
    "change.no_delta_unsafe": "没有声明 delta，因此既不可能判为等效，也不能用一个“不差”的配置替换不可行的基线。",
    "change.replace": "{baseline}不可行，因此 {config} 只须排除 {delta} 及以上的损失；目前的损失至多 {loss}。",
    "change.seeds": "要作推荐，基线和 {config} 都须至少有 {least} 个种子；目前最少的为 {n} 个。",
    # next step
    "next.flags": "不是再加种子：先找出 ERROR 级警示的原因，修好，再重跑其中列出的单元。",
    "next.missing": "只补缺失的单元，其余不动（muster up）：{pairs}{price}。",
    "next.failed": "配置跑失败的种子不能剔除：{cells}。若已不再声明，请先放回；排除死因后重跑（muster retry），"
    "或者把失败率本身作为一项结果来报告。",
    "next.unread": "这些单元的命令都正常结束，只是读不出结果：{cells}。改正 campaign.yaml 里的 results:，再用 muster "
    "up 重新读取即可，不必重跑。",
    "next.lost": "补上缺失的单元，或说明缺失与结果无关：{cells}。用 muster flag accept {code} --because TEXT 记录之后，"
    "判定不再等它们；它们仍计入 N。",
    "next.none": "就这一结论而言，不需要再加种子。",
    "next.undeclared": "在任何后续种子运行之前，先在 campaign.yaml 中声明 decision:。",
    "next.to_least": "{more}（{configs}），使每个配置达到 {least} 个{price}。",
    "next.more": "{more}（{configs}），使每个配置达到 {n} 个：这样能以 {power}% 的功效检出 delta = {delta} 的差异"
    "{price}。",
    "next.look": "{n} 个种子不是声明过的分析时点（{looks}）：请在运行之前先声明。",
    "next.left": "预算还剩 {left}。",
    "left.some": "预算只剩 {left}",
    "left.none": "预算已用完",
    "next.over": "无法分辨；用剩余预算可检出的差异为 {affordable}，用现有种子为 {detectable}。要检出 delta = {delta}，"
    "每个配置须有 {n} 个种子（{configs}；共需再加 {more} 个）{price}；{left}。",
    "next.over_now": "无法分辨；用现有种子可检出的差异为 {detectable}。要检出 delta = {delta}，每个配置须有 {n} 个种子"
    "（{configs}；共需再加 {more} 个）{price}；{left}。",
    "next.never": "无法分辨；用现有种子可检出的差异为 {detectable}。按目前的离散度，每个配置一千个种子也检不出 delta "
    "= {delta}。",
    "next.enough": "{column} 不需要更多种子：现有的种子已能以 {power}% 的功效检出 delta = {delta} 的差异。仍未解决的见"
    "上文。",
    "next.no_contender": "再加种子预计也不会改变结论：没有哪个候选还可能既可行又更好。",
    "next.no_delta": "没有声明 delta，因此不给出种子数。用现有种子，{column} 上可检出的差异为 {detectable}。",
    "next.no_delta_yet": "没有声明 delta，因此不给出种子数；现有的种子也没有离散度，算不出可检出的差异。",
    "next.no_spread": "无法给出种子数：现有的种子没有离散度可供规划。",
    "price.hours": "；训练加评估约 {time}",
    "price.money": "；训练加评估约 {time}、{money}",
    "most.hours": "；训练加评估至多约 {time}",
    "most.money": "；训练加评估至多约 {time}、{money}",
    # declared
    "declared.primary": "主指标：{column}，{direction}为优。基线：{baseline}。",
    "declared.limit": "约束：{rule}（就均值而言）。",
    "declared.no_limit": "未声明约束。",
    "declared.delta": "有意义的最小差异（delta）：{delta}。",
    "declared.no_delta": "未声明有意义的最小差异（delta）。",
    "declared.checkpoint.last": "评估所用的 checkpoint：每次训练的最后一个。",
    "declared.checkpoint.best": "评估所用的 checkpoint：每次训练中按 {metric} 选出的最佳者。",
    "declared.test": "alpha = {alpha}（各次分析合计），分析时点（looks）为 {looks} 个种子，功效 {power}。",
    "declared.proxy": "数据划分 {split} 是代理：{note}",
    "uncurved.told": "没有 {metric} 的学习曲线{cells}：{why}。",
    "uncurved.cells": "（{cells}）",
    "uncurved.key": "它取自 {path}，其中没有随步数记录的 {name}",
    "uncurved.name": "progress: 所指的记录里没有这样命名的键",
    "uncurved.log": "progress: 没有指明带步数的记录",
    "declared.resumed": "{cell}：{text}。",
    "declared.split_note": "数据划分 {split}：{note}",
    "declared.no_proxy": "没有数据划分被声明为代理。{splits} 测的是否正如其名，Muster 并不核查。",
    "declared.config_note": "配置 {config}：{note}",
    "declared.scope": "对本矩阵之外的任务、训练步数和配置，不作任何说明。",
    "declared.none": "campaign.yaml 中没有 decision: 一节。",
    # evidence
    "evidence.about": "上文每条论断都带有编号。右侧的命令从论断追溯到尝试、文件、哈希和代码。",
    "evidence.id": "编号",
    "evidence.claim": "论断",
    "evidence.cells": "单元数",
    "evidence.columns": "列",
    "evidence.command": "命令",
    "claim.table": "{caption}：表中各数。",
    "claim.matrix": "应有结果的单元已完成 {k}/{n}；{missing}。",
    "claim.matrix_whole": "应有结果的 {n} 个单元已全部完成。",
}
