"""English: the code that cells ran."""

TEXTS = {
    "code.changed": "commit {commit} plus uncommitted changes in {files} ({names})",
    "code.diff": "commit {commit} plus uncommitted changes (diff {dirty})",
    "code.untracked": "{file} untracked",
    "code.unknown": "not known: {why}",
    "code.slow": "git did not answer in {n} s",
    "code.unreadable": "git could not tell what was changed",
    "code.no_repository": "under no version control",
    "code.no_commit": "in a repository without a commit yet",
    "code.unrecorded": "not recorded",
    "code.hashed": "{state}; {files} of source known by hash",
    "code.states": "{n} states of it: {states}",
    "code.not_yet": "not known yet",
    "count.code_file": "{n} file|{n} files",
}
