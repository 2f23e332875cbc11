"""The research journal `dev_vN.md` as text: what a person wrote in it, what was generated, what is still open."""
