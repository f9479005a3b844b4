// Tables of a session: rows for the keys of a batch go into a function before it runs, and their
// gradients to the tables after it.

#include <algorithm>

#include "train/session/compiled_part.h"
#include "train/session/session.h"

namespace paddle::train {
namespace {

int find_value(const std::vector<ir::Port>& ports, const std::string& name) {
  const auto at = std::find_if(ports.begin(), ports.end(), [&](const ir::Port& port) {
    return port.kind == ir::PortKind::kValue && port.name == name;
  });
  return at == ports.end() ? -1 : static_cast<int>(at - ports.begin());
}

}  // namespace

std::string Session::tables_rejection() const {
  if (options_.mesh.size() != options_.mesh.axis_size_of("data"))
    return "tables are shared by the ranks of 'parallel.data' only";
  if (!options_.compile.target.device.is_cpu())
    return str("tables are kept in memory of the host; expected --device cpu");
  return step_->tables_rejection();
}

MissingRow Session::missing_rows(Part part) {
  const bool trains = part == Part::kTrain || part == Part::kAccumulate || part == Part::kForward ||
                      part == Part::kStatistics;
  return trains ? MissingRow::kInitial : MissingRow::kZero;
}

void Session::connect_tables(program::ParameterBinding& ports, const StepInputs& inputs,
                             Part part) const {
  ports.tables = &tables_;
  ports.fields = inputs.fields;
  ports.numbers_rows = part == Part::kTrain && step_->reads_norms();
}

void Session::note_lookups(Compiled& c, const program::ParameterBinding& ports) {
  for (const program::TableLookup& each : ports.lookups())
    c.lookups.push_back({.table = each.table,
                         .field = each.field,
                         .width = each.rows.dim(-1).value(),
                         .dtype = each.rows.dtype()});
}

void Session::find_table_ports(Compiled& c) {
  for (size_t i = 0; i < c.lookups.size(); ++i) {
    LookupPorts& each = c.lookups[i];
    const program::TableLookup lookup{each.table, each.field, {}, {}};
    each.rows = find_value(c.function->inputs, program::rows_port(lookup));
    each.numbers = find_value(c.function->inputs, program::numbers_port(lookup));
    each.keys = find_value(c.function->inputs, each.field);
    const int output = find_value(c.function->outputs, gradient_port(each.table, each.field));
    if (output >= 0) c.gradients.push_back({i, output});
  }
}

void Session::find_norm_ports(Compiled& c) const {
  for (const std::string& table : phases_.at(phase_).tables)
    c.norms.push_back({table, find_value(c.function->inputs, "squares:" + table),
                       find_value(c.function->outputs, "scale:" + table)});
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

bool Session::counts_here(const Compiled& c, const LookupPorts& lookup) const {
  if (c.output_placement.empty()) return true;
  for (const GradientPort& each : c.gradients)
    if (&c.lookups[each.lookup] == &lookup)
      return !c.output_placement.at(static_cast<size_t>(each.output)).empty() ||
             options_.communicator->is_root();
  return false;
}

std::vector<TableUse> Session::table_uses(const Compiled& c,
                                          const std::vector<Array>& batch) const {
  std::vector<TableUse> out;
  for (const LookupPorts& each : c.lookups) {
    const auto input = static_cast<size_t>(each.keys);
    const auto field = static_cast<size_t>(c.field[input]);
    Array keys;
    put_input(keys, batch.at(field), field);
    // The rows are placed as the keys are.
    if (!c.placement[input].empty())
      keys =
          partition::shard(keys, c.placement[input], options_.mesh, options_.communicator->rank());
    out.push_back({each.table, std::move(keys), counts_here(c, each)});
  }
  return out;
}

void Session::begin_tables(Part part, std::span<const std::vector<Array>> micro_batches) {
  if (tables_.empty()) return;
  tables_.begin_step(missing_rows(part));
  next_use_ = 0;
  if (options_.eager) return;
  for (const std::vector<Array>& batch : micro_batches) {
    bind_sizes(batch);
    for (const TableUse& use : table_uses(compiled(part), batch)) tables_.add(use);
  }
  tables_.fetch(true);
}

void Session::announce(std::span<const std::vector<Array>> micro_batches) {
  if (tables_.empty() || options_.mesh.size() == 1) return;
  const Part part = updates_by_parts() ? Part::kAccumulate : Part::kTrain;
  std::vector<TableUse> uses;
  for (const std::vector<Array>& batch : micro_batches) {
    bind_sizes(batch);
    for (TableUse& use : table_uses(compiled(part), batch)) uses.push_back(std::move(use));
  }
  tables_.announce(uses);
}

void Session::read_tables(Compiled& c, const std::vector<Array>& batch) {
  if (c.lookups.empty()) return;
  tables_.begin_step(missing_rows(c.part));
  next_use_ = 0;
  for (const TableUse& use : table_uses(c, batch)) tables_.add(use);
  tables_.fetch();
}

void Session::fill_rows(Compiled& c, const std::vector<Array>& batch) {
  for (const NormPorts& each : c.norms)
    if (each.squares >= 0)
      c.inputs[static_cast<size_t>(each.squares)] = Array::scalar(table_squares_.at(each.table));
  if (c.lookups.empty()) return;
  if (is_of_data(c.part) && options_.mesh.size() > 1) {
    // Values of the data read no rows, and one rank may compute them.
    for (const LookupPorts& each : c.lookups) {
      Dims shape = batch.at(static_cast<size_t>(c.field[static_cast<size_t>(each.keys)])).shape;
      shape.push_back(each.width);
      c.inputs[static_cast<size_t>(each.rows)] = Array::zeros(each.dtype, shape);
    }
    return;
  }
  if (c.part == Part::kPredict && options_.mesh.size() > 1)
    fail(ErrorCode::kConfig,
         "sparse_embedding: metrics of written sequences are computed on one rank");
  if (!c.trains_tables()) read_tables(c, batch);
  for (const LookupPorts& each : c.lookups) {
    program::TableRows read = tables_.rows(next_use_++, each.numbers >= 0);
    Array& rows = c.inputs[static_cast<size_t>(each.rows)] = std::move(read.rows);
    const TensorType& type = c.function->body.arguments[static_cast<size_t>(each.rows)]->type;
    ensure(!c.logical || concrete(type.shape) == rows.shape, "table '", each.table,
           "': rows are placed otherwise than their keys");
    if (each.numbers >= 0) c.inputs[static_cast<size_t>(each.numbers)] = std::move(read.numbers);
  }
}

void Session::take_gradients(const Compiled& c, const std::vector<Array>& outputs) {
  const size_t first_use = next_use_ - c.lookups.size();
  for (const GradientPort& each : c.gradients)
    tables_.add_gradients(first_use + each.lookup, outputs[static_cast<size_t>(each.output)]);
}

void Session::take_gradients(const StepOutputs& outputs, const program::ParameterBinding& ports,
                             size_t first_use) {
  const auto& lookups = ports.lookups();
  for (const TableGradient& each : outputs.tables) {
    const auto at = std::find_if(lookups.begin(), lookups.end(), [&](const auto& lookup) {
      return lookup.table == each.table && lookup.field == each.field;
    });
    tables_.add_gradients(first_use + static_cast<size_t>(at - lookups.begin()), each.rows.array());
  }
  next_use_ = first_use + lookups.size();
}

void Session::update_tables(const StepScalars& numbers,
                            const std::map<std::string, double>& scales) {
  if (tables_.empty()) return;
  RowUpdate update;
  update.step = numbers.step;
  update.bound = step_->definition().clip.value;
  if (!numbers.learning_rates.empty()) update.rate = numbers.learning_rates[0];
  tables_.update(update, scales);
}

void Session::apply_accumulated(const StepScalars& numbers) {
  if (step_->reads_norms()) table_squares_ = tables_.sums_of_squares();
  std::map<std::string, double> scales;
  if (options_.eager) {
    const StepOutputs out = run_eager(Part::kApply, {}, numbers, 1, 0);
    for (const auto& [table, scale] : out.table_scales)
      scales[table] = scale.array().on_host().number();
  } else {
    Compiled& c = compiled(Part::kApply);
    const std::vector<Array>& out = run_compiled(c, {}, numbers, 1, 0);
    for (const NormPorts& each : c.norms)
      if (each.scale >= 0) scales[each.table] = out[static_cast<size_t>(each.scale)].number();
  }
  update_tables(numbers, scales);
}

}  // namespace paddle::train
