"""What a page makes of records: labels, times, charts, timelines and rows of lists."""
