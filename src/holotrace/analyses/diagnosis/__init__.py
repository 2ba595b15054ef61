"""Why is the job slow, who and which line of code causes it, what does it cost, and what should you do?"""
