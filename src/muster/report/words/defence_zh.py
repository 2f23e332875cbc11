"""Chinese: the defence notes."""

from __future__ import annotations

TEXTS = {
    "defence.title": "答辩要点：{campaign}",
    "defence.about": "以下是评委可能提出的问题，均以现有数字作答，并说明其局限。编号指向文末的证据链。",
    "ask.claim": "你的结论是什么？",
    "ask.real": "差异是真的吗？有多大？",
    "ask.seeds": "为什么是 {seeds}？",
    "ask.seed": "去掉某一个种子，结论还成立吗？",
    "ask.checkpoint": "checkpoint 是怎么选的？",
    "ask.ood": "OOD 真的是分布外吗？",
    "ask.splits": "各数据划分测的是否正如其名？",
    "ask.safety": "得分的提升是不是拿安全性换来的？",
    "ask.left_out": "有没有种子被漏掉或剔除？",
    "ask.same_run": "会不会有两个配置其实是同一次运行？",
    "ask.many": "多次比较和多次期中分析是否都考虑在内？",
    "ask.parts": "各个组成部分分别贡献了多少？",
    "ask.reproduce": "别人能复核吗？",
    "ask.money": "如果经费翻倍，你会做什么？",
    "ask.not": "哪些话不能说？",
    # real
    "real.invalid": "这些数字带有 ERROR 级警示，不构成结果。仅供备查：",
    "real.incomplete": "尚无法判断：实验矩阵不完整。目前的数字仅供备查：",
    "real.counted": "按声明的检验，显著优于基线 {baseline} 的：{better}；显著更差的：{worse}；足够接近（在 ±delta 以内"
    "）的：{equal}；尚无定论的：{open}。",
    "real.size": "Hedges g = {g}；{config} 与基线 {baseline} 的种子两两相比，{percent}% 的情形更好；{delta}。",
    "real.delta_above": "增益的整个 {level}% 置信区间都高于 delta = {delta}（有意义的最小差异）",
    "real.delta_inside": "增益的 {level}% 置信区间跨过 delta = {delta}，是否有实际意义尚无定论",
    "real.delta_below": "增益的整个 {level}% 置信区间都低于 delta = {delta}，不大可能有实际意义",
    "real.delta_lost": "损失的整个 {level}% 置信区间都高于 delta = {delta}，是有实际意义的损失",
    "real.delta_spared": "损失的整个 {level}% 置信区间都低于 delta = {delta}（有意义的最小差异）",
    "real.delta_lost_open": "损失的 {level}% 置信区间跨过 delta = {delta}，是否有实际意义尚无定论",
    "real.no_delta": "没有声明 delta，不判断其实际意义",
    "real.no_interval": "没有置信区间，不判断其实际意义",
    "real.too_few": "{seeds}太少，不足以判断其实际意义",
    # seeds
    "seeds.looks": "{n} 个种子是声明过的分析时点（looks：{looks} 个种子）。",
    "seeds.at_no_look": "{n} 个种子不是声明过的分析时点（looks：{looks} 个种子）。",
    # one seed
    "seed.open": "{config}：使用全部种子时不显著；任去掉一个种子，p 在 {low} 到 {high} 之间，阈值为 {threshold}。",
    "seed.too_few": "每个配置只有 {seeds}，去掉一个就无从计算。",
    "seed.nothing": "没有作任何比较。",
    # checkpoint
    "checkpoint.undeclared": "没有声明评估哪个 checkpoint。",
    "checkpoint.held": "已知 checkpoint 所含步数的有 {trainings}，其中最少的完成了 {percent}% 的训练步数。",
    "checkpoint.saved": "已知 checkpoint 保存时间的有 {trainings}，其中最早的保存于训练进行到 {percent}% 时。",
    "checkpoint.unknown": "各次训练的 checkpoint 保存于何时，均不可知。",
    "count.training": "{n} 次训练",
    # splits
    "splits.means": "{config}：各划分上的均值为 {values}。",
    "splits.proxy_only": "因此，{split} 上的结果只对上述代理所指的情形成立，不能引申。",
    # safety
    "safety.not_declared": "没有声明约束，因此对安全性无话可说。",
    # left out
    "left_out.missing": "目前有：{cells}。",
    "left_out.whole": "应有结果的 {n} 个单元已全部完成，其他已声明的单元也无一缺失。",
    "left_out.explained": "有，并且有人说明了原因：{cells}。",
    "left_out.excluded": "exclude: 从矩阵中去掉了 {places}：{names}。该配置首次运行时它们就没有被声明，"
    "也都没有运行过。",
    "count.place": "{n} 处",
    # same run
    "same_run.flagged": "有迹象表明是的：",
    "same_run.warned": "没有确证，但以下情况需要查看：",
    "same_run.no_flag": "没有迹象：就已知的信息而言，没有两个配置共用同样的数值、同样的均值和标准差、同一个 checkpoint"
    "、同一条学习曲线或同一份解析后的设置。",
    "same_run.known": "{trainings}中，已知 checkpoint 哈希的有 {checkpoints} 次，已知学习曲线哈希的有 {curves} 次，已"
    "知解析后设置哈希的有 {settings} 次。",
    "same_run.nothing_known": "checkpoint、学习曲线和解析后设置的哈希都不可知，只能比较数值本身。",
    # many
    "many.test": "只对一个数据划分上的一个主指标作检验：{column}。Holm 校正覆盖 {candidates}；alpha = {alpha} 按 "
    "{looks}均分，最严的阈值为 {strictest}。",
    "many.routes": "代价和损失的置信界也同样分摊 alpha：每个界的置信度为 {each}%，全部候选和各次分析合计为 {level}%。"
    "等效要求所有候选同时满足，因此只按分析次数分摊。",
    "many.others": "其余各列只是估计值：不作检验，不标星号。",
    "many.declared": "判定程序取自 campaign.yaml 中的 decision:；据记录，首个单元完成之后没有改动过。",
    "many.undeclared": "没有声明判定程序，因此不作检验，也不作排名。",
    # parts
    "parts.pair": "{factor}（由 {without} 到 {with_}），{pair}：{differences}。",
    "parts.difference": "{column} 之差 {difference}",
    "parts.estimates": "均为估计值，附 Welch 95% 置信区间；未作任何检验。",
    "parts.none": "没有只差一个因子的配置对，无法区分各部分的作用。",
    # reproduce
    "reproduce.code": "代码版本：{code}。",
    "reproduce.mixed": "并非所有单元都出自同一份代码：",
    "reproduce.how": "每个种子的值都在 CSV 表中；muster trace 可从任一论断追溯到尝试、文件和哈希，muster verify 会指出"
    "每一处断裂或过期的环节。",
    # money
    "money.twice": "每个配置的种子增加到 {n} 个（{configs}），{column} 上可检出的差异将从 {now} 降到 {then}{price}。",
    # can't claim
    "not.result": "不能说其中任何数字是结果：有 {errors}。",
    "not.matrix": "不能就整个矩阵下论断：{missing}。",
    "not.verdict": "不能下结论：事先没有声明判定程序。",
    "not.better": "不能说 {configs} 在 {column} 上优于基线 {baseline}：按声明的检验不显著。",
    "not.equal": "不能说 {configs} 在 {column} 上与基线 {baseline} 一样好：不显著不等于相同。",
    "not.feasible": "不能说 {configs} 满足约束 {rule}：没有得到证明。",
    "not.each_seed": "不能说每个种子都满足约束 {rule}：可行只就均值而言；{config} 的 {n} 个种子中 {keep} 个满足{proof}"
    "。",
    "not.other_columns": "不能说 {columns} 上有任何经过检验的结果：它们只是估计值。",
    "not.proxy": "对 {split} 的论断不能超出代理的范围：{note}",
    "not.parts": "不能说某个因子的作用已经证实：那些只是估计值，未作检验。",
    "not.scope": "不能外推到本矩阵之外的任务、训练步数和配置。",
}
