"""The timeline: events of ranks as the browser draws them, at the level of detail that its pixels can show."""
