#!/bin/sh
# Pretends to write a region's statements of a day: one of several shells that do it at the same time.
set -eu
day=$1 region=$2
echo "statements of $region on $day, part $((PAWL_SHARD_INDEX + 1)) of $PAWL_SHARDS, under $PAWL_LOCK and token $PAWL_TOKEN"
