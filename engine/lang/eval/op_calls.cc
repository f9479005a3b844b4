// Calls of operations by the text: their layer forms, the mode of the run, and the records of
// calls.
#include "lang/eval/evaluation.h"

namespace paddle::lang {

Value Evaluation::call_op(const Op& op, Arguments arguments, const Site& site, Frame& frame) {
  CallRecord record;
  if (options().observer && !is_abstract()) {
    record.callee = op.name();
    record.where = site.where;
    for (const Value& value : arguments.positional) {
      if (value.is_tensor()) record.inputs.push_back(value.tensor().type());
    }
  }
  variables_.forget_used();
  Value result;
  if (auto value = call_layer(op, arguments, site, frame)) {
    result = *value;
  } else {
    for (const char* word : {"name", "share"}) {
      if (find_param(op, word) || !arguments.find(word)) continue;
      reject(site.where,
             str(op.name(), ": '", word, "' names parameters, and this operation has none"));
    }
    // Operations with two behaviors follow the mode of the run.
    if (find_param(op, "training") && !arguments.find("training")) {
      bool given = false;
      for (size_t i = 0; i < arguments.positional.size() && i < op.params().size(); ++i) {
        given |= !op.params()[i].is_operand &&
                 std::string_view(op.attrs()[static_cast<size_t>(op.params()[i].index)].name) ==
                     "training";
      }
      if (!given) arguments.named.emplace_back("training", Value(options().training));
    }
    result = operations_.invoke(op, arguments, site.where);
  }
  if (options().observer && !is_abstract()) {
    if (result.is_tensor()) record.outputs.push_back(result.tensor().type());
    if (const ValueList* items = result.items()) {
      for (const Value& item : *items) {
        if (item.is_tensor()) record.outputs.push_back(item.tensor().type());
      }
    }
    record.parameters = variables_.used();
    if (!record.parameters.empty()) {
      const std::string& first = record.parameters.front().first;
      record.path = first.substr(0, first.rfind('.'));
    }
    this->record(std::move(record));
  }
  return result;
}

}  // namespace paddle::lang
