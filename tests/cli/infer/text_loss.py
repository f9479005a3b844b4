"""text_loss.py PREDICTIONS.jsonl TRAIN.txt VALID.txt CONTEXT: the cross entropy of predicted logits
against the validation text, with the characters of the training text as vocabulary."""
import json
import math
import sys

predictions, train, valid, context = sys.argv[1], open(sys.argv[2]).read(), open(sys.argv[3]).read(), int(sys.argv[4])
vocabulary = sorted(set(train))
ids = [vocabulary.index(c) for c in valid]
total, count = 0.0, 0
for window, line in enumerate(open(predictions)):
    for i, logits in enumerate(json.loads(line)["logits"]):
        target = ids[window * context + i + 1]
        top = max(logits)
        total += math.log(sum(math.exp(x - top) for x in logits)) + top - logits[target]
        count += 1
print(f"{total / count:.4f}")
