"""What must be true of the modules of Google Cloud and Baidu, and mistakes that must be noticed."""
