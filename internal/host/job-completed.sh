#!/bin/sh
# Written by agentd. The runner runs it after the last step of every job.
rm -f @JOB_DIR@/box/busy || :
