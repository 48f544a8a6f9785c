"""What `rejoin explain --size` rests on: runs, what they show, and the fit."""
