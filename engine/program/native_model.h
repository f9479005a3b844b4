#pragma once
// The model of a model file, a run or a checkpoint: traced, compiled and run batch by batch.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/recent_list.h"
#include "ir/module.h"
#include "lang/syntax/program.h"
#include "program/model.h"
#include "program/prediction.h"
#include "program/served_tables.h"
#include "runtime/executable.h"

namespace paddle::program {

class NativeModel final : public Model {
 public:
  /// The folder of a saved model or a checkpoint, as find_model_folder returns it.
  static std::unique_ptr<Model> open_folder(const std::string& path, const LoadOptions& options);
  /// A model file, `file.yaml[:variant]`.
  static std::unique_ptr<Model> open_file(const std::string& path, const LoadOptions& options);

  int64_t parameter_count() const override { return store_.parameter_count(); }
  const std::vector<Array>& run(const std::vector<Array>& inputs) override;
  std::vector<Array> run_on_device(const std::vector<Array>& inputs) override;
  double flops(const std::vector<Array>& inputs) override;
  std::unique_ptr<Model> clone() const override;
  std::unique_ptr<Model> other_function(const std::string& name) const override;
  int64_t cache_slots() const override;
  void reset() override;
  Scores scores(size_t i) const override;
  bool is_sigmoid(size_t i) const override;
  const LoadReport* load_report() const override { return report_ ? &*report_ : nullptr; }

 private:
  /// A traced function, ready to run. A model that asks for `static(dim)` has one for each value.
  struct Trace {
    std::map<std::string, int64_t> fixed;  ///< dims that it is good for
    std::shared_ptr<ir::Function> function;
    std::unique_ptr<runtime::Executable> executable;
    std::vector<Array> arrays;    ///< one per function input
    std::vector<int> user_input;  ///< per function input: number of the user's input, or -1
    std::vector<size_t> user_output;
    /// An input with the rows of a table for the keys of a user's input.
    struct RowInput {
      size_t input;
      int user_input;
      std::shared_ptr<const tables::MappedTable> table;
    };
    std::vector<RowInput> row_inputs;
    /// Puts the user's inputs into `arrays`.
    void set_inputs(const std::vector<Array>& inputs);
  };
  explicit NativeModel(const LoadOptions& options);
  NativeModel(const NativeModel& other);
  void read_model_folder(const std::string& path, const std::string& function);
  void read_model_file(const std::string& path, const LoadOptions& options);
  /// kUsage if the model cannot compute in `precision_`.
  void check_precision();
  /// Traces the program with these values for `static(dim)`; false if it asks for more.
  bool trace(const std::map<std::string, int64_t>& known);
  void add_trace(std::shared_ptr<ir::Function> function, std::map<std::string, int64_t> fixed);
  /// Connects an input with rows; kModel if the table or the field is missing.
  void add_row_input(Trace& trace, size_t input, const std::string& table,
                     const std::string& field) const;
  /// Sets what a trace's function runs on, except the user's inputs.
  void bind_arrays(Trace& trace);
  Trace& trace_for(const std::vector<Array>& inputs);

  LoadOptions options_;
  std::string path_;                    ///< of the folder or the model file
  std::vector<std::string> functions_;  ///< that can be opened
  std::vector<OutputScale> scales_;     ///< per output, of the last trace
  ParameterStore store_;
  std::map<std::string, Array> live_states_;  ///< of the running sequence
  RecentList<Trace> traces_;
  std::vector<Array> results_;  ///< of the last call
  std::shared_ptr<const lang::Program> program_;
  const lang::EntryPoint* entry_ = nullptr;
  std::shared_ptr<ServedTables> tables_;  ///< whose rows functions take as inputs; null: none
  bool use_float64_ = false;
  std::shared_ptr<const quant::FakeQuantization> quantization_;
  /// Fills a store with the weights of a function.
  std::function<std::optional<LoadReport>(const ir::Function&, ParameterStore&)> fill_store_;
  /// Held while a model or a clone of it traces: they share the program and the files.
  std::shared_ptr<std::mutex> tracing_ = std::make_shared<std::mutex>();
  std::optional<LoadReport> report_;
  std::shared_ptr<runtime::Profile> profile_;
  compiler::Observer observe_;
  compiler::CompileOptions compile_;
};

}  // namespace paddle::program
