"""Measurements of Mainstem beside Delta Spark and delta-rs, on logs that anyone can make again."""
