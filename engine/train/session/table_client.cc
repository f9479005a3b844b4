#include "train/session/table_client.h"

#include <algorithm>
#include <set>

namespace paddle::train {
namespace {

int find_value(const std::vector<ir::Port>& ports, const std::string& name) {
  const auto at = std::find_if(ports.begin(), ports.end(), [&](const ir::Port& port) {
    return port.kind == ir::PortKind::kValue && port.name == name;
  });
  return at == ports.end() ? -1 : static_cast<int>(at - ports.begin());
}

/// Why the run cannot have tables; "" if it can.
std::string rejection_of(const SessionContext& context) {
  if (context.options.mesh.size() != context.options.mesh.axis_size_of("data"))
    return "tables are shared by the ranks of 'parallel.data' only";
  if (!context.options.compile.target.device.is_cpu())
    return str("tables are kept in memory of the host; expected --device cpu");
  const ps::UpdateOptions& updates = context.options.tables.updates;
  if (!updates.is_sync() && context.step->reads_norms())
    return "norms of gradients (clip.global_norm, clip.norm, train.log_gradient_norm) are those of "
           "all workers; expected parameter_server.mode: sync";
  if (!updates.is_sync() && context.options.eager)
    return "--eager: parameter_server.mode: async is for the compiled step";
  return context.step->tables_rejection();
}

TableOpening opening_of(const SessionContext& context) {
  TableOpening out = context.options.tables;
  out.rule = context.step->definition().optimizers.front().optimizer;
  return out;
}

/// The fields of the data that policies count.
std::set<std::string> fields_of(const std::vector<TablePolicy>& policies) {
  std::set<std::string> out;
  for (const TablePolicy& each : policies)
    for (const auto& number : {each.policy.show, each.policy.click})
      if (number && !number->field.empty()) out.insert(number->field);
  return out;
}

/// How a function reads keys that a table lacks.
MissingRow missing_rows(StepFunction kind) {
  const bool training =
      trains(kind) || kind == StepFunction::kForward || kind == StepFunction::kStatistics;
  return training ? MissingRow::kInitial : MissingRow::kZero;
}

}  // namespace

size_t TableClient::field_index(const std::string& name) const {
  for (size_t i = 0; i < context_.fields.size(); ++i)
    if (context_.fields[i].name == name) return i;
  fail(ErrorCode::kConfig, "tables: statistics count the field '", name,
       "', which the data does not have");
}

TableClient::TableClient(const SessionContext& context)
    : context_(context),
      tables_(context.store, opening_of(context), rejection_of(context),
              context.has_ranks() ? context.options.communicator : nullptr,
              context.options.connect_servers) {
  for (const std::string& name : fields_of(context.options.tables.policies)) field_index(name);
}

void TableClient::connect(program::ParameterBinding& ports, const StepInputs& inputs,
                          StepFunction kind) {
  std::optional<std::map<std::string, Array>> numbers;
  if (context_.options.eager && trains(kind)) {
    numbers.emplace();
    for (const std::string& name : fields_of(context_.options.tables.policies))
      (*numbers)[name] = inputs.fields.at(name).array();
  }
  tables_.set_fields(std::move(numbers));
  ports.tables = &tables_;
  ports.fields = inputs.fields;
  ports.numbers_rows = kind == StepFunction::kTrain && context_.step->reads_norms();
}

void TableClient::note_lookups(CompiledFunction& c, const program::ParameterBinding& ports) {
  for (const program::TableLookup& each : ports.lookups())
    c.lookups.push_back({.table = each.table,
                         .field = each.field,
                         .mask = each.mask,
                         .width = each.rows.dim(-1).value(),
                         .dtype = each.rows.dtype()});
}

void TableClient::find_ports(CompiledFunction& c, const std::vector<std::string>& tables) {
  const std::vector<ir::Port>&inputs = c.function->inputs, &outputs = c.function->outputs;
  c.roles.resize(inputs.size());
  const auto find_input = [&](const std::string& name) {
    const int at = find_value(inputs, name);
    if (at >= 0) c.roles[static_cast<size_t>(at)] = PortRole::kTable;
    return at;
  };
  for (size_t i = 0; i < c.lookups.size(); ++i) {
    LookupPorts& each = c.lookups[i];
    const program::TableLookup lookup{each.table, each.field, {}, {}};
    each.rows = find_input(program::rows_port(lookup));
    each.numbers = find_input(program::numbers_port(lookup));
    each.keys = find_value(inputs, each.field);
    const int output = find_value(outputs, gradient_port(each.table, each.field));
    if (output >= 0) c.gradients.push_back({i, output});
  }
  for (const std::string& table : tables)
    c.norms.push_back(
        {table, find_input(squares_port(table)), find_value(outputs, scale_port(table))});
}

std::optional<Dims> CompiledFunction::table_shape(int input, const std::vector<Dims>& batch) const {
  for (const LookupPorts& each : lookups) {
    if (input != each.rows && input != each.numbers) continue;
    Dims shape = batch.at(static_cast<size_t>(field[static_cast<size_t>(each.keys)]));
    if (input == each.rows) shape.push_back(each.width);
    return shape;
  }
  return std::nullopt;
}

bool TableClient::counts_here(const CompiledFunction& c, const LookupPorts& lookup) const {
  if (c.output_placement.empty()) return true;
  for (const GradientPort& each : c.gradients)
    if (&c.lookups[each.lookup] == &lookup)
      return !c.output_placement.at(static_cast<size_t>(each.output)).empty() || context_.is_root();
  return false;
}

std::vector<TableUse> TableClient::uses(const CompiledFunction& c,
                                        const std::vector<Array>& batch) const {
  std::vector<TableUse> out;
  for (const LookupPorts& each : c.lookups) {
    const auto input = static_cast<size_t>(each.keys);
    const auto field = static_cast<size_t>(c.field[input]);
    Array keys;
    context_.put_field(keys, batch.at(field), field);
    // The rows are placed as the keys are.
    if (!c.placement[input].empty())
      keys = partition::shard(keys, c.placement[input], context_.options.mesh, context_.rank());
    TableUse use{each.table, std::move(keys), counts_here(c, each)};
    if (!each.mask.empty()) {
      const size_t at = field_index(each.mask);
      context_.put_field(use.mask, batch.at(at), at);
      if (!c.placement[input].empty())
        use.mask =
            partition::shard(use.mask, c.placement[input], context_.options.mesh, context_.rank());
    }
    if (trains(c.kind))
      tables_.add_numbers(use, [&](const std::string& name) {
        const size_t at = field_index(name);
        Array numbers;
        context_.put_field(numbers, batch.at(at), at);
        if (!c.placement[input].empty())
          numbers =
              partition::shard(numbers, c.placement[input], context_.options.mesh, context_.rank());
        return numbers;
      });
    out.push_back(std::move(use));
  }
  return out;
}

void TableClient::begin(StepFunction kind) {
  tables_.begin_step(missing_rows(kind), trains(kind));
  next_use_ = 0;
}

void TableClient::add(const CompiledFunction& c, const std::vector<Array>& batch) {
  for (const TableUse& use : uses(c, batch)) tables_.add(use);
}

void TableClient::read(const CompiledFunction& c, const std::vector<Array>& batch) {
  if (c.lookups.empty()) return;
  begin(c.kind);
  add(c, batch);
  tables_.fetch();
}

void TableClient::fill(CompiledFunction& c, const std::vector<Array>& batch) {
  for (const NormPorts& each : c.norms)
    if (each.squares >= 0)
      c.inputs[static_cast<size_t>(each.squares)] = Array::scalar(squares_.at(each.table));
  if (c.lookups.empty()) return;
  if (is_of_data(c.kind) && context_.has_ranks()) {
    // Values of the data read no rows, and one rank may compute them.
    for (const LookupPorts& each : c.lookups) {
      Dims shape = batch.at(static_cast<size_t>(c.field[static_cast<size_t>(each.keys)])).shape;
      shape.push_back(each.width);
      c.inputs[static_cast<size_t>(each.rows)] = Array::zeros(each.dtype, shape);
    }
    return;
  }
  if (c.kind == StepFunction::kPredict && context_.has_ranks())
    fail(ErrorCode::kConfig,
         "sparse_embedding: metrics of written sequences are computed on one rank");
  if (!trains(c.kind)) read(c, batch);
  for (const LookupPorts& each : c.lookups) {
    program::TableRows read = tables_.rows(next_use_++, each.numbers >= 0);
    Array& rows = c.inputs[static_cast<size_t>(each.rows)] = std::move(read.rows);
    const TensorType& type = c.function->body.arguments[static_cast<size_t>(each.rows)]->type;
    ensure(!c.logical || concrete(type.shape) == rows.shape, "table '", each.table,
           "': rows are placed otherwise than their keys");
    if (each.numbers >= 0) c.inputs[static_cast<size_t>(each.numbers)] = std::move(read.numbers);
  }
}

void TableClient::take_gradients(const CompiledFunction& c, const std::vector<Array>& outputs) {
  const size_t first_use = next_use_ - c.lookups.size();
  for (const GradientPort& each : c.gradients)
    tables_.add_gradients(first_use + each.lookup, outputs[static_cast<size_t>(each.output)]);
}

void TableClient::take_gradients(const StepOutputs& outputs, const program::ParameterBinding& ports,
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

void TableClient::update(const StepScalars& numbers, const std::map<std::string, double>& scales) {
  if (tables_.empty()) return;
  RowUpdate update;
  update.step = numbers.step;
  update.bound = context_.step->definition().clip.value;
  if (!numbers.learning_rates.empty()) update.rate = numbers.learning_rates[0];
  tables_.update(update, scales);
}

}  // namespace paddle::train
