"""The next runs to train: candidates, their information, and studies that train them."""
