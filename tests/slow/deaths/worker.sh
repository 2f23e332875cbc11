# A short training run of a shell: worker.sh ATTEMPT STEPS PAUSE FAULT AT SEED, as worker.py has it.
attempt=$1 steps=$2 pause=$3 fault=$4
at=$(awk "BEGIN { print int($5 * $2) + 1 }")
[ "$attempt" = 1 ] || fault=none
mkdir -p "$MUSTER_OUT/replay"
step=0
while [ $step -lt "$steps" ]; do
    step=$((step + 1))
    sleep "$pause"
    printf '{"step": %s}\n' $step >>"$MUSTER_OUT/metrics.jsonl"
    echo chunk >"$MUSTER_OUT/replay/chunk_$step.bin"
    [ $step = "$at" ] || continue
    case $fault in
    exit) exit 3 ;;
    early) exit 0 ;;
    deadlock) # nobody will ever write to it
        mkfifo "$MUSTER_OUT/fifo"
        cut -d' ' -f1 /proc/uptime >"$MUSTER_OUT/hung.part"
        mv "$MUSTER_OUT/hung.part" "$MUSTER_OUT/hung"
        read -r _ <"$MUSTER_OUT/fifo"
        ;;
    truncated) : >"$MUSTER_OUT/metrics.jsonl" ;;
    rotated) mv "$MUSTER_OUT/metrics.jsonl" "$MUSTER_OUT/metrics.jsonl.1" ;;
    esac
done
touch "$MUSTER_OUT/finished"
