#!/bin/bash
# Tries what a host may do with its role and what it may not, and writes the answers to the console. At last the machine ends itself.
# first-account sets: MARK REGION PREFIX OTHER_KEY OTHER_MACHINE REST
shutdown -h +20
exec 3>"${CONSOLE:-/dev/console}"
export AWS_REGION=$REGION AWS_PAGER='' AWS_MAX_ATTEMPTS=5

say() { echo "$MARK: $*" >&3; }

# try NAME COMMAND...: writes ok, or the code in the error of the AWS CLI.
try() {
  local name=$1 out code
  shift
  if out=$("$@" 2>&1); then
    say "$name ok"
  else
    code=$(sed -n 's/.*An error occurred (\([A-Za-z.]*\)).*/\1/p' <<<"$out" | head -n 1)
    say "$name ${code:-failed: $(tail -n 1 <<<"$out" | cut -c 1-100)}"
  fi
}

metadata() { curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"; }

token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 600' http://169.254.169.254/latest/api/token)
machine=$(metadata instance-id)
me=$(aws sts get-caller-identity --query UserId --output text)
own='{"hostKey":{"S":"'$me'"}}' other='{"hostKey":{"S":"'$OTHER_KEY'"}}'
set_x=(--update-expression 'SET x = :x' --expression-attribute-values '{":x":{"S":"x"}}')

say "user-id $me"
say "machine $machine"
say "tag $(metadata tags/instance/remuda:fleet)"
try own-record aws dynamodb get-item --table-name "$PREFIX-instances" --key "$own"
try other-record aws dynamodb get-item --table-name "$PREFIX-instances" --key "$other"
try scan aws dynamodb scan --table-name "$PREFIX-instances"
try batch aws dynamodb batch-get-item --request-items '{"'"$PREFIX"'-instances":{"Keys":['"$other"']}}'
try partiql aws dynamodb execute-statement --statement "SELECT * FROM \"$PREFIX-instances\""
try write-record aws dynamodb update-item --table-name "$PREFIX-instances" --key "$own" "${set_x[@]}"
try own-report aws dynamodb update-item --table-name "$PREFIX-reports" --key "$own" "${set_x[@]}"
try other-report aws dynamodb update-item --table-name "$PREFIX-reports" --key "$other" "${set_x[@]}"
try own-end aws ec2 terminate-instances --dry-run --instance-ids "$machine"
try other-end aws ec2 terminate-instances --dry-run --instance-ids "$OTHER_MACHINE"
try queues aws sqs list-queues
say end
sleep "$REST"
aws ec2 terminate-instances --instance-ids "$machine"
