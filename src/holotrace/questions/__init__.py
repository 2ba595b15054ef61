"""What all questions share: how they describe themselves, and how their results answer, print and show themselves."""
