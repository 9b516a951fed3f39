-- Takes the images away; readers gather the rows again.
DROP TABLE dl_snapshot_images;
