"""Chinese: the code that cells ran."""

TEXTS = {
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
