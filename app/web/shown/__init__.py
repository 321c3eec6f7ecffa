"""Turn records into what pages show: labels, times, charts, timelines and rows of lists."""
