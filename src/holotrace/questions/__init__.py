"""Code that all questions share: it describes the questions, and sums up, prints and displays their results."""
