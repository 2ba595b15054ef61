"""Why is the job slow, which rank and which line of code cause it, what does it cost, and what should you do?"""
