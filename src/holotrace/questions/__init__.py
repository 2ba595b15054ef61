"""Code that all questions share: descriptions of questions, and how results are summed up, printed and displayed."""
