"""What people call things in texts, English and Chinese, in one place. Small on purpose: a name that is not known here
leaves a number unbound, a wrong one would bind it wrongly."""

from __future__ import annotations

import re


def _split_words(text: str) -> tuple[str, ...]:
    """An underscore stands for any gap between two words."""
    return tuple(text.split())


# a campaign's own name -> other words for it
SPLITS = {
    "id": ("in-distribution", "in distribution", "iid", "分布内", "域内", "同分布"),
    "ood": ("out-of-distribution", "out of distribution", "分布外", "域外", "异分布"),
    "test": ("测试集", "test set"),
    "val": ("validation", "valid", "验证集", "validation set"),
    "validation": ("val", "valid", "验证集", "validation set"),
    "train": ("训练集", "training set"),
    "eval": ("evaluation", "评估集"),
}
METRICS = {
    "score": ("得分", "分数", "评分"),
    "cost": ("代价", "成本"),
    "return": ("回报", "累计回报"),
    "reward": ("奖励",),
    "success": ("success rate", "成功率"),
    "success_rate": ("success", "成功率"),
    "accuracy": ("acc", "准确率"),
    "acc": ("accuracy", "准确率"),
    "loss": ("损失",),
    "risk_penalty": ("风险惩罚", "风险罚项"),
    "violation_rate": ("违规率",),
}
# measures that a text may speak of though the campaign has no such metric
OTHER_METRICS = _split_words("""
    f1 precision recall auc auroc bleu rouge perplexity ppl mse rmse mae psnr ssim fid iou latency throughput speed
    length violation violations entropy kl 精度 召回率 吞吐 延迟 速度 长度 困惑度 误差
""")
STATS = {
    "mean": ("mean", "avg", "average", "均值", "平均值", "平均", "μ"),
    "sd": ("sd", "std", "s.d.", "stdev", "stddev", "std dev", "standard deviation", "标准差", "σ"),
}

# the number is made from results, and is none itself: a difference, a rank, another statistic
DERIVED = _split_words("""
    median min max minimum maximum iqm variance var rank ranking p-value ratio relative normalized normalised
    improvement gain gap difference differ differs diff delta reduction sum total cumulative ci sem se stderr range
    quantile percentile vs versus compared factor times half twice double confidence_interval standard_error
    Δ ∆ δ 中位数 最大值 最小值 方差 排名 比值 相对 归一化 差值 差距 差异 相差 变化 总和 合计 标准误 置信区间 高出
    高了 低了 多了 少了 领先 落后 相比 对比 一半 两倍
""")
# the same, unless a word such as `to` leads to the number: rises by 0.2, rises to 2.4
CHANGES = _split_words("""
    improve improves improved improving change changed reduce reduces reduced increase increased decrease decreased drop
    dropped rise rose fall fell 提升 提高 下降 降低 减少 增加 增长 上升 改善
""")
# about whichever config that is: true of another one tomorrow
SUPERLATIVE = _split_words("best worst highest lowest top 最高 最低 最好 最佳 最差 最大 最小 最优 最多 最少")
SPREAD_IS_OTHER = re.compile(
    r"\b(?:se|sem|ci|stderr|iqr)\b|standard error|confidence|标准误|置信|四分位|95\s*\\?%", re.IGNORECASE
)
# the number is set or counted, not measured
FOREIGN = _split_words("""
    lr learning_rate batch batch_size gamma discount discount_factor epsilon eps tau lambda beta alpha eta dropout decay
    weight_decay momentum temperature threshold limit bound budget price version epoch step episode layer level power
    significance_level warm_up cuda python torch jax driver cudnn weight coefficient hyperparameter horizon hidden width
    depth p section sec table tab figure fig equation eq chapter appendix phase part page line algorithm theorem gpu cpu
    hour minute second day time duration date year month memory size dim dimension clip target goal interval slide
    学习率 折扣 折扣因子 批大小 批量 阈值 上限 下限 限制 预算 单价 价格 花费 费用 步数 步长 版本 显著性 显著性水平
    置信度 种子数 等级 级别 权重 系数 温度 超参数 超参 维度 宽度 深度 时间 耗时 时长 用时 显存 内存 附录 步骤 阶段 功效
    间隔 目标 目标值 轮次 日期 α β γ λ τ ε η
""")
COUNTER = re.compile(r"[图表第式章节页]\s*$")  # right before a number: 图 3
# right before a number, or right behind it: the number is one that others are held against
LIMIT = re.compile(
    r"(?:\b(?:below|above|under|over|than|least|most|exceed|exceeds|exceeding|within|beyond)|低于|高于|超过|小于|大于|不足|至少|至多"
    r"|不到|接近|逼近)\s*$",
    re.IGNORECASE,
)
LIMIT_BEHIND = re.compile(r"\s?(?:以下|以上|以内|以外|左右|或更|or (?:more|less|below|above|higher|lower|better))")
# says nothing about which number it is
PLAIN = _split_words("""
    the a an of on in at for with and is was are were be reach reaches reached achieve achieves achieved get gets got
    has had have obtain obtains obtained yield yields to about around approximately ca its it our ours we this that
    which method model config configuration setting variant split set metric result value here while whereas but also
    only now final last eval evaluation evaluated higher_is_better lower_is_better higher_better lower_better proposed
    n k seed report reported respectively then
    方法 模型 配置 方案 设置 变体 我们 本文 的 在 上 下 中 为 是 达 到 达到 达到了 至 约 大约 得 得到 取得 有
    其 该 而 则 也 且 但 均 都 及 仅 只 了 结果 指标 数值 值 集 集上 评估 评测 测试 最终 当前 目前 越高越好
    越低越好 越大越好 越小越好 和 与 降至 降到 升至 升到 提升到 提升至 提高到 提高至 下降到 下降至 降低到 降低至 增加到
    增加至 减少到 减少至 分别 分别为 依次 表现
""")
# what is shown as a former state stays one
FORMER = re.compile(
    r"\b(?:old|older|previous|previously|former|formerly|legacy|superseded|outdated)\b|旧|之前|此前|先前|以前|原来|历史|上一版",
    re.IGNORECASE,
)
FROM = re.compile(r"(?:\bfrom|从|由|自)\s*(?:about|约)?\s*$", re.IGNORECASE)  # right before a number
# right before a number: what stands before it leads to the number itself, not to a difference
LEVEL = re.compile(
    r"(?:\b(?:to|at|of|is|was|are|were|reaches|reached)|[=≈:：]|[到至为是达])\s*(?:约|大约|about|only|仅)?\s*$"
)
SCALED = re.compile(
    r"[×x*]\s*10|10\s*\^|\b1e[0-9]|/\s*100|[(（]\s*(?:k|K|M|千|万|百万|thousands?|millions?)\s*[)）]|in thousands"
    r"|单位[:：]?\s*[千万百]"
)
# right behind a number: it counts something that results do not, or is a difference
UNITS = re.compile(
    r"\s?[-–]?(?P<unit>GPU|CPU|"
    r"小时|分钟|秒|毫秒|天|周|元|块|万|千|百|亿|倍|个|条|次|步|轮|行|组|名|页|章|节|项|种|层|份|台|张|卡|"
    r"(?:CNY|RMB|USD|EUR|yuan|dollars?|hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s|ms|days?|weeks?|months?|years?|"
    r"steps?|seeds?|runs?|episodes?|epochs?|iterations?|iters?|cells?|configs?|configurations?|samples?|params?|parameters|"
    r"layers?|points?|pp|rounds?|attempts?|times|fold|GB|GiB|MB|MiB|KB|TB|FPS|fps|Hz|kHz|MHz|GHz|W|kWh|k|K|M|B|x|higher|lower|"
    r"better|worse|more|less|above|below)(?![A-Za-z0-9_])|[×°])"
)
