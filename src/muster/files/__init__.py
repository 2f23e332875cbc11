"""Files and folders: the safe opener, atomic writes, the layout of `.muster`, whose a campaign is, crash points."""
