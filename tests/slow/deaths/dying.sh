# Ends in one of many ways: dying.sh WAY [ARGUMENT]
echo "step 1 loss 0.5"
case "$1" in
exit) exit "$2" ;;
not_found) train_that_is_not_installed --lr 1 ;;
waits)
    touch "$MUSTER_OUT/ready"
    exec sleep 60
    ;;
full) cat /dev/zero >"$2/out-$$" || exit 1 ;;
full_dd) dd if=/dev/zero of="$2/out-$$" bs=64k count=100000 || exit 1 ;;
says_killed)
    echo Killed >&2
    exit "$2"
    ;;
child_killed) # as a shell reports it, and hands it on
    sh -c 'kill -9 $$'
    exit $?
    ;;
early)
    printf '{"step": 40}\n' >"$MUSTER_OUT/metrics.jsonl"
    echo "No space left on device, or so it seems; leaving" >&2
    ;;
esac
