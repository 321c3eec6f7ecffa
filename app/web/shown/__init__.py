"""Prepare records for pages: labels, times, charts, timelines and rows of lists."""
