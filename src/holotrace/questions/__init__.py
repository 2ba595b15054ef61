"""Parts shared by all questions: their descriptions, and how results are summed up, printed and displayed."""
