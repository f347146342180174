"""What turns gradients into steps: optimisers, their schedule, and the guard that leaves steps out."""
