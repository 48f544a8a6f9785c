"""What a plan is judged by: refusals, advice, compatibility, the size of its state."""
