"""What a run is, its record on the disk, its data, and its model, loaded and measured."""
