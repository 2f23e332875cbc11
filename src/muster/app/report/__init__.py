"""Tables, figures and documents from a campaign's facts, as text or bytes. Writes nothing itself."""
