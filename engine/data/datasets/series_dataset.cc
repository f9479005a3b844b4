// Windows of time series: what is known of the past, and the values that follow.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "data/cells.h"
#include "data/datasets/sources.h"
#include "data/sources/record_source.h"
#include "formats/csv.h"

namespace paddle::data {
namespace {

class SeriesDataset final : public Dataset {
 public:
  SeriesDataset(const SeriesOptions& options, const DatasetOptions& part) : options_(options) {
    check_options();
    CsvFileOptions file = options_.file;
    for (const auto* list : {&options_.targets, &options_.covariates, &options_.known})
      columns_.insert(columns_.end(), list->begin(), list->end());
    for (const std::string& name : columns_) {
      CsvField field;
      field.name = name;
      file.fields.push_back(std::move(field));
    }
    for (const std::string* each : {&options_.group, &options_.time})
      if (!each->empty()) file.more_columns.push_back(*each);
    records_ = open_records(file);
    read_rows();
    if (options_.forecasts)
      lay_last_windows();
    else
      lay_windows(part);
    fit();
    describe();
  }
  int64_t size() const override { return static_cast<int64_t>(windows_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    const Window& window = windows_[static_cast<size_t>(index)];
    const std::vector<int64_t>& rows = series_[window.series].rows;
    check(index);
    out.resize(fields_.size());
    const auto fill = [&](size_t field, int64_t begin, int64_t count, size_t first, size_t width) {
      out[field].reset(DType::kF32, Dims{count, static_cast<int64_t>(width)});
      float* to = out[field].data<float>();
      for (int64_t r = 0; r < count; ++r)
        for (size_t c = first; c < first + width; ++c)
          *to++ = static_cast<float>(scaled(rows[static_cast<size_t>(begin + r)], c));
    };
    const size_t targets = options_.targets.size(), known = options_.known.size();
    fill(0, window.begin, options_.history, 0, columns_.size());
    size_t next = 1;
    if (!options_.forecasts)
      fill(next++, window.begin + options_.history, options_.horizon, 0, targets);
    if (known > 0)
      fill(next, window.begin + options_.history, options_.horizon, columns_.size() - known, known);
  }
  void check(int64_t index) const override {
    if (bad_rows_.empty()) return;
    const Window& window = windows_[static_cast<size_t>(index)];
    const std::vector<int64_t>& rows = series_[window.series].rows;
    const int64_t length = options_.history + (options_.forecasts ? 0 : options_.horizon);
    for (int64_t r = window.begin; r < window.begin + length; ++r)
      if (const auto bad = bad_rows_.find(rows[static_cast<size_t>(r)]); bad != bad_rows_.end())
        throw Error(bad->second);
  }
  std::string location(int64_t index, int64_t field, int64_t element) const override {
    const Window& window = windows_[static_cast<size_t>(index)];
    int64_t row = window.begin;
    std::string column;
    if (field >= 0 && element >= 0) {
      const int64_t width = fields_[static_cast<size_t>(field)].shape[1];
      row += (field > 0 ? options_.history : 0) + element / width;
      const auto c = static_cast<size_t>(element % width);
      const bool is_known = fields_[static_cast<size_t>(field)].name == "known";
      column = str(", column '",
                   columns_[is_known ? columns_.size() - options_.known.size() + c : c], "'");
    } else if (options_.forecasts) {  // that after which the forecast begins
      row += options_.history - 1;
      if (!options_.group.empty())
        column = str(", ", options_.group, " '", printable(series_[window.series].name), "'");
    }
    return records_->location(series_[window.series].rows[static_cast<size_t>(row)]).text() +
           column;
  }
  std::vector<std::string> paths() const override {
    std::vector<std::string> out;
    for (const std::string& path : records_->paths())
      out.push_back(std::filesystem::absolute(path).lexically_normal().string());
    return out;
  }
  std::vector<Fitted> fitted() const override {
    if (options_.shift.empty()) return {};
    const auto part = [&](const char* field, size_t first, size_t count) {
      const auto cut = [&](const std::vector<double>& list) {
        const auto at = list.begin() + static_cast<std::ptrdiff_t>(first);
        return std::vector<double>(at, at + static_cast<std::ptrdiff_t>(count));
      };
      Fitted out;
      out.field = field;
      out.shift = cut(options_.shift);
      out.factor = cut(options_.factor);
      return out;
    };
    std::vector<Fitted> out = {part("past", 0, columns_.size()),
                               part("future", 0, options_.targets.size())};
    const size_t known = options_.known.size();
    if (known > 0) out.push_back(part("known", columns_.size() - known, known));
    return out;
  }
  /// By rows: those whose targets are in use.
  std::vector<bool> used_sources() const override {
    std::vector<bool> used(static_cast<size_t>(records_->size()));
    for (const Series& each : series_)
      for (int64_t r = each.begin; r < each.end; ++r)
        used[static_cast<size_t>(each.rows[static_cast<size_t>(r)])] = true;
    return used;
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    int64_t rows = 0;
    for (const Series& each : series_) rows += each.end - each.begin;
    return {{"series", str(series_.size(), ", ", rows, " of ", records_->size(), " rows")},
            {"columns", join(columns_, ", ")}};
  }

 private:
  struct Series {
    std::string name;            ///< that of its group
    std::vector<int64_t> rows;   ///< records in the order of time
    int64_t begin = 0, end = 0;  ///< the rows that range and split leave
  };
  struct Window {
    size_t series = 0;
    int64_t begin = 0;
  };

  void check_options() const {
    if (options_.targets.empty())
      fail(ErrorCode::kConfig, "series: `targets` names the columns to forecast, it is empty");
    if (options_.history < 1 || options_.horizon < 1 || options_.stride < 1)
      fail(ErrorCode::kConfig, "series: history, horizon and stride are at least 1");
    if (options_.shift.size() != options_.factor.size())
      fail(ErrorCode::kConfig, "series: shift and factor have different lengths");
  }

  void read_rows() {
    const std::vector<std::string>& names = records_->names();
    const auto column = [&](const std::string& name) {
      const auto at = std::find(names.begin(), names.end(), name);
      if (at == names.end())
        fail(ErrorCode::kData, records_->paths()[0], ": no column '", name, "'",
             did_you_mean(name, names), "; there are: ", join(names, ", "));
      return static_cast<size_t>(at - names.begin());
    };
    std::vector<size_t> wanted;
    for (const std::string& name : columns_) wanted.push_back(column(name));
    const size_t group = options_.group.empty() ? 0 : column(options_.group);
    const size_t time = options_.time.empty() ? 0 : column(options_.time);
    std::vector<std::string> times;
    std::map<std::string, size_t, std::less<>> known;
    std::vector<std::string_view> cells;
    std::string scratch;
    for (int64_t row = 0; row < records_->size(); ++row) {
      try {
        records_->cells(row, cells, scratch);
      } catch (const Error& error) {
        // Its group is not known, so that it could be missing from any series.
        if (error.code() != ErrorCode::kData || !options_.group.empty() || !options_.time.empty())
          throw;
        cells.assign(names.size(), {});
        bad_rows_.emplace(row, error);
      }
      const std::string_view key = options_.group.empty() ? std::string_view() : cells[group];
      const auto [at, is_new] = known.emplace(std::string(key), series_.size());
      if (is_new) series_.push_back({.name = std::string(key), .rows = {}});
      series_[at->second].rows.push_back(row);
      if (!options_.time.empty()) times.emplace_back(cells[time]);
      for (size_t c = 0; c < wanted.size(); ++c) {
        double value = 0;
        const std::string_view cell = cells[wanted[c]];
        if (is_missing(cell) || !cell_number(cell, options_.file.decimal, value)) {
          value = std::numeric_limits<double>::quiet_NaN();
          bad_rows_.emplace(
              row, Error(ErrorCode::kData,
                         str("column '", columns_[c], "': ",
                             is_missing(cell)
                                 ? "the value is missing; series need one in every row"
                                 : str("'", printable(cell.substr(0, 40)), "' is not a number")),
                         records_->location(row)));
        }
        values_.push_back(value);
      }
    }
    if (!options_.time.empty()) sort_by_time(times);
  }

  /// Puts the rows of each series into the order of the column of times.
  void sort_by_time(const std::vector<std::string>& cells) {
    TimeFormDetector detector;
    for (const std::string& cell : cells) detector.observe(cell);
    const TimeForm form = detector.form();
    std::vector<double> times;
    for (size_t row = 0; row < cells.size(); ++row) {
      const auto moment = parse_time(cells[row], form);
      if (!moment) bad_time(cells);
      times.push_back(*moment);
    }
    const auto at = [&](int64_t row) { return times[static_cast<size_t>(row)]; };
    for (Series& each : series_) {
      std::stable_sort(each.rows.begin(), each.rows.end(),
                       [&](int64_t a, int64_t b) { return at(a) < at(b); });
      const auto twice = std::adjacent_find(each.rows.begin(), each.rows.end(),
                                            [&](int64_t a, int64_t b) { return at(a) == at(b); });
      if (twice != each.rows.end())
        throw Error(
            ErrorCode::kData,
            str("column '", options_.time, "': duplicate time '",
                printable(cells[static_cast<size_t>(*std::next(twice))]), "'",
                options_.group.empty() ? "; `group` names the column that identifies the series"
                                       : str(" in the series '", printable(each.name), "'")),
            records_->location(*std::next(twice)));
    }
  }

  /// Names the first cell that is not written as those before it.
  [[noreturn]] void bad_time(const std::vector<std::string>& cells) const {
    TimeFormDetector detector;
    for (size_t row = 0; row < cells.size(); ++row) {
      detector.observe(cells[row]);
      if (detector.form() != TimeForm::kNone) continue;
      throw Error(ErrorCode::kData,
                  str("column '", options_.time, "': '", printable(cells[row].substr(0, 40)),
                      "' is not a time", row > 0 ? " in the form of those before it" : ""),
                  records_->location(static_cast<int64_t>(row)));
    }
    fail(ErrorCode::kData, records_->paths()[0], ": column '", options_.time, "' has no times");
  }

  /// For each series the rows up to its last one that has targets. Rows after it give what is
  /// known of the future.
  void lay_last_windows() {
    for (size_t s = 0; s < series_.size(); ++s) {
      Series& each = series_[s];
      const auto has_targets = [&](int64_t r) {
        for (size_t c = 0; c < options_.targets.size(); ++c)
          if (!std::isnan(value(each.rows[static_cast<size_t>(r)], c))) return true;
        return false;
      };
      each.end = static_cast<int64_t>(each.rows.size());
      int64_t last = each.end;
      while (last > 0 && !has_targets(last - 1)) --last;
      const std::string name = options_.group.empty()
                                   ? std::string("the series")
                                   : str("the series '", printable(each.name), "'");
      if (last < options_.history)
        fail(ErrorCode::kData, records_->paths()[0], ": ", name, " has ", last,
             " rows with values, a forecast is made from the last ", options_.history);
      if (!options_.known.empty()) check_future(each, last, name);
      windows_.push_back({s, last - options_.history});
    }
  }

  void check_future(const Series& each, int64_t begin, const std::string& name) const {
    if (each.end - begin < options_.horizon)
      fail(ErrorCode::kData, records_->paths()[0], ": ", name, " has ", each.end - begin,
           " rows after the last value, ", options_.horizon, " are needed for what is known of ",
           "the future (", join(options_.known, ", "), "); leave their other cells empty");
    for (int64_t r = begin; r < begin + options_.horizon; ++r)
      for (size_t c = columns_.size() - options_.known.size(); c < columns_.size(); ++c)
        if (const int64_t row = each.rows[static_cast<size_t>(r)]; std::isnan(value(row, c)))
          throw Error(ErrorCode::kData,
                      str("column '", columns_[c], "': the value is missing; it is known of the ",
                          "future"),
                      records_->location(row));
  }

  void lay_windows(const DatasetOptions& part) {
    const int64_t length = options_.history + options_.horizon;
    int64_t longest = 0;
    for (size_t s = 0; s < series_.size(); ++s) {
      Series& each = series_[s];
      const auto rows = static_cast<int64_t>(each.rows.size());
      longest = std::max(longest, rows);
      const Part kept = resolve_part(part, rows, true);
      each.begin = kept.begin, each.end = kept.end;
      const int64_t first = options_.overlap_history
                                ? std::max<int64_t>(0, each.begin - options_.history)
                                : each.begin;
      for (int64_t at = first; at + length <= each.end; at += options_.stride)
        windows_.push_back({s, at});
    }
    if (windows_.empty())
      fail(ErrorCode::kData, records_->paths()[0], ": no series is long enough: history and ",
           "horizon are ", length, " rows, the longest series has ", longest,
           ", of which range and split may leave fewer");
  }

  /// Statistics of the rows in use.
  void fit() {
    if (options_.scaling == Scaling::kNone || !options_.shift.empty()) {
      if (!options_.shift.empty() && options_.shift.size() != columns_.size())
        fail(ErrorCode::kConfig, "series: shift and factor have ", options_.shift.size(),
             " values for ", columns_.size(), " columns");
      return;
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      double low = HUGE_VAL, high = -HUGE_VAL, mean = 0, squares = 0;
      int64_t count = 0;
      for (const Series& each : series_)
        for (int64_t r = each.begin; r < each.end; ++r) {
          const double x = value(each.rows[static_cast<size_t>(r)], c);
          if (!std::isfinite(x)) continue;
          low = std::min(low, x), high = std::max(high, x);
          const double delta = x - mean;  // Welford's update
          mean += delta / static_cast<double>(++count);
          squares += delta * (x - mean);
        }
      const bool by_range = options_.scaling == Scaling::kMinMax;
      const double width =
          by_range ? high - low
                   : std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, count)));
      options_.shift.push_back(count == 0 ? 0 : by_range ? low : mean);
      options_.factor.push_back(width > 0 ? 1 / width : 1);
    }
  }

  void describe() {
    const auto add = [&](const char* name, int64_t rows, size_t width) {
      Field field;
      field.name = name;
      field.shape = {rows, static_cast<int64_t>(width)};
      fields_.push_back(std::move(field));
    };
    add("past", options_.history, columns_.size());
    if (!options_.forecasts) add("future", options_.horizon, options_.targets.size());
    if (!options_.known.empty()) add("known", options_.horizon, options_.known.size());
  }

  double value(int64_t row, size_t column) const {
    return values_[static_cast<size_t>(row) * columns_.size() + column];
  }
  double scaled(int64_t row, size_t column) const {
    const double x = value(row, column);
    return options_.shift.empty() ? x : (x - options_.shift[column]) * options_.factor[column];
  }

  SeriesOptions options_;
  RecordSourcePtr records_;
  std::vector<std::string> columns_;   ///< targets, covariates, known
  std::vector<double> values_;         ///< [rows, columns]; NaN in bad cells
  std::map<int64_t, Error> bad_rows_;  ///< with the first thing that is wrong in each
  std::vector<Series> series_;
  std::vector<Window> windows_;
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr make_series(const SeriesOptions& options, const DatasetOptions& part) {
  return std::make_shared<SeriesDataset>(options, part);
}

}  // namespace paddle::data
