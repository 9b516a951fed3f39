-- Nothing to do: DuckDB has no index of some rows, and finds the few live files that have a deletion vector by two columns.
SELECT 1;
