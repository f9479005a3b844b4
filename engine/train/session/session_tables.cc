// Tables of a session: rows for the keys of a batch go into a function before it runs, and their
// gradients to the tables after it.

#include <algorithm>

#include "train/session/compiled_part.h"
#include "train/session/session.h"

namespace paddle::train {

std::string Session::tables_rejection() const {
  if (options_.mesh.size() > 1) return "tables cannot be trained on several ranks ('parallel:')";
  if (options_.accumulate > 1) return "tables cannot be trained with train.accumulate; expected 1";
  if (!options_.compile.target.device.is_cpu())
    return str("tables are kept in memory of the host; expected --device cpu");
  return step_->tables_rejection();
}

MissingRow Session::missing_rows(Part part) {
  if (part == Part::kTrain) return MissingRow::kInsert;
  return part == Part::kForward || part == Part::kStatistics ? MissingRow::kInitial
                                                             : MissingRow::kZero;
}

void Session::connect_tables(program::ParameterBinding& ports, const StepInputs& inputs,
                             Part part) const {
  ports.tables = &tables_;
  ports.fields = inputs.fields;
  ports.numbers_rows = part == Part::kTrain && step_->numbers_rows();
}

void Session::note_lookups(Compiled& c, const program::ParameterBinding& ports) {
  for (const program::TableLookup& each : ports.lookups())
    c.lookups.push_back({.table = each.table,
                         .field = each.field,
                         .width = each.rows.dim(-1).value(),
                         .dtype = each.rows.dtype()});
}

void Session::find_table_ports(Compiled& c) {
  const auto find = [](const std::vector<ir::Port>& ports, const std::string& name) {
    const auto at = std::find_if(ports.begin(), ports.end(), [&](const ir::Port& port) {
      return port.kind == ir::PortKind::kValue && port.name == name;
    });
    return at == ports.end() ? -1 : static_cast<int>(at - ports.begin());
  };
  for (LookupPorts& each : c.lookups) {
    const program::TableLookup lookup{each.table, each.field, {}, {}};
    each.rows = find(c.function->inputs, program::rows_port(lookup));
    each.numbers = find(c.function->inputs, program::numbers_port(lookup));
    each.keys = find(c.function->inputs, each.field);
    if (std::any_of(c.gradients.begin(), c.gradients.end(),
                    [&](const TablePorts& known) { return known.table == each.table; }))
      continue;
    const int rows = find(c.function->outputs, "gradient:" + each.table);
    if (rows >= 0)
      c.gradients.push_back({each.table, rows, find(c.function->outputs, "scale:" + each.table)});
  }
}

std::optional<Dims> Session::Compiled::table_shape(int input,
                                                   const std::vector<Dims>& shapes) const {
  for (const LookupPorts& each : lookups) {
    if (input != each.rows && input != each.numbers) continue;
    Dims shape = shapes.at(static_cast<size_t>(field[static_cast<size_t>(each.keys)]));
    if (input == each.rows) shape.push_back(each.width);
    return shape;
  }
  return std::nullopt;
}

void Session::fill_rows(Compiled& c) {
  if (c.lookups.empty()) return;
  tables_.begin_step(c.missing);
  for (const LookupPorts& each : c.lookups) {
    program::TableRows read = tables_.read(each.table, c.inputs[static_cast<size_t>(each.keys)]);
    c.inputs[static_cast<size_t>(each.rows)] = std::move(read.rows);
    if (each.numbers >= 0) c.inputs[static_cast<size_t>(each.numbers)] = std::move(read.numbers);
  }
}

void Session::update_tables(const std::vector<TableGradient>& gradients,
                            const StepScalars& numbers) {
  RowUpdate update;
  update.step = numbers.step;
  update.bound = step_->definition().clip.value;
  if (!numbers.learning_rates.empty()) update.rate = numbers.learning_rates[0];
  for (const TableGradient& each : gradients) {
    update.scale.reset();
    if (each.scale.defined()) update.scale = each.scale.array().on_host().number();
    tables_.update(each.table, each.rows.array(), update);
  }
}

}  // namespace paddle::train
