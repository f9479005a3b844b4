#pragma once
// The data section of a config as plain structs: one per kind of dataset, the transforms and
// the loader. `make_dataset` turns DatasetOptions into a Dataset; paths are already resolved.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/dataset.h"
#include "data/datasets/text_tokenizer.h"
#include "data/tokens.h"

namespace paddle::data {

/// Images and labels in IDX files (MNIST), plain or gzip. Images become uint8 [1, rows, columns].
struct IdxOptions {
  std::string images = {};
  std::string labels = {};  ///< "" for none
  std::string image_field = "image";
  std::string label_field = "label";
  std::vector<std::string> classes = {};  ///< names; empty for none
};

/// Arrays whose first axis counts samples: one .npz, or one .npy per field.
struct NpzOptions {
  std::string path = {};
  /// Field and array name; empty: every array, under its own name.
  std::vector<std::pair<std::string, std::string>> arrays = {};
};
/// Datasets of one HDF5 file whose first axis counts samples.
struct Hdf5Options {
  std::string path = {};
  std::vector<std::pair<std::string, std::string>> arrays = {};  ///< field and dataset
};
struct NpyOptions {
  std::vector<std::pair<std::string, std::string>> files = {};  ///< field and path
};

/// Handling of an empty cell of a column of numbers or categories, or of a key that JSON lacks.
enum class MissingPolicy {
  kDefault,   ///< numbers: kError; categories: kCategory, but kError for targets
  kError,     ///< makes the sample a bad one
  kFill,      ///< numbers: `fill`
  kNan,       ///< numbers
  kCategory,  ///< categories: the empty string is one
};
enum class Scaling {
  kNone,
  kMinMax,    ///< to 0 … 1 by the column's smallest and largest value in the rows that are used
  kStandard,  ///< to mean 0 and deviation 1 of the column in the rows that are used
};
enum class ColumnKind {
  kNumeric,
  kCategorical,  ///< a number per distinct string: by vocabulary, or hashed into buckets
  kText,         ///< numbers of the tokens of one column, as many as the text has
  kImage,        ///< an image file that the column names, or holds
  kMask,         ///< an image of class numbers
  kMultiLabel,   ///< the classes that the cell lists, as a vector of 0 and 1
  kAudio,        ///< a sound file that the column names, or holds: samples in -1 … 1
  kNumbers,      ///< a list of numbers in one cell
  kKeys,         ///< a list of keys in one cell, as many as there are
};

/// One field made of one or more columns.
struct CsvField {
  std::string name = {};
  /// Names, numbers from 0 ("0"), runs ("I1..I13") or patterns ("C*"). Empty: the column that is
  /// named as the field is.
  std::vector<std::string> columns = {};
  bool scalar = false;  ///< true: one column has shape [], not [1]
  ColumnKind kind = ColumnKind::kNumeric;
  std::optional<DType> dtype = {};  ///< default: float32 for numeric, int64 for categorical

  MissingPolicy missing = MissingPolicy::kDefault;

  // Numeric columns.
  double fill = 0;
  bool log = false;  ///< sign(x) * log(1 + |x|), before scaling
  Scaling scaling = Scaling::kNone;
  /// Per column, where they are known already (from the training rows): (x - shift) * factor.
  std::vector<double> shift = {}, factor = {};

  // Categorical columns. Buckets > 0: hashed; else by vocabulary. A vocabulary that lists the empty
  // string has it as a category whatever `missing` says.
  int64_t buckets = 0;
  bool per_column = false;  ///< column c uses numbers c*buckets … (c+1)*buckets - 1
  std::vector<std::string> vocabulary = {};
  std::string vocabulary_file = {};
  /// A string outside the vocabulary has id 0 and token i has id i + 1; false: it is an error and
  /// token i has id i.
  bool unknown_is_zero = false;
  bool unknown_shares_zero = false;  ///< see Fitted: for models of older versions

  // Text columns. Id 0 is "<unknown>", every token outside of the vocabulary.
  TokenKind tokens = TokenKind::kWords;
  bool lowercase = true;
  int64_t max_length = 256;  ///< longer texts are cut
  /// Instead of words and a vocabulary: subwords, with the tokenizer's own tokens around a text if
  /// `special_tokens`.
  TokenizerChoice tokenizer = {};
  bool special_tokens = true;
  /// Of the vocabulary taken from the training rows: the most frequent tokens, and how often a
  /// token must occur.
  int64_t vocabulary_size = 30000, min_count = 1;

  // Files. Paths are relative to `folder`, or else to the folder of the file that names them.
  std::string folder = {};
  int channels = 3;            ///< images: 1 (grey) or 3 (RGB); with dtype uint8 or uint16
  bool reduce_16_bit = false;  ///< images, as in ImageFolderOptions
  /// Masks: the class of each stored value, in the order of the classes; values that are not listed
  /// are an error. Empty: stored values are the classes.
  std::vector<std::pair<int64_t, std::string>> values = {};
  std::vector<int64_t> ignored = {};  ///< masks: stored values that become -100, as no class
  bool ignores_others = false;        ///< masks: so do values that are not listed
  int64_t sample_rate = 0;            ///< audio: files with another rate are resampled
  /// Lists in a cell of CSV are separated by it; in JSONL they are JSON lists.
  std::string separator = "|";
  Dims shape = {};   ///< numbers: of the field
  int64_t most = 0;  ///< keys: longer lists are cut
};

/// Records with columns, from one file or several that are read as one.
struct CsvFileOptions {
  /// The form of the records: the name of a kind with `open` (data/dataset_kind.h).
  std::string format = "csv";
  std::string path = {};
  std::vector<std::string> more_paths = {};  ///< further files with the same columns
  std::vector<std::pair<std::string, std::string>> line_files = {};  ///< column and path
  /// Of predictions: each of these files is a record, whose only column, of this name, is its path.
  std::vector<std::string> listed_files = {};
  std::string listed_column = {};
  char delimiter = '\0';  ///< '\0': a tab for .tsv and .tab, else a comma
  char quote = '"';       ///< '\0': none, as quotes are ordinary characters
  char decimal = '.';     ///< of numbers: a point or a comma
  bool header = true;
  std::vector<std::string> column_names = {};  ///< for files without a header
  std::vector<CsvField> fields = {};           ///< empty: each column, numeric, as a scalar
  std::vector<std::string> more_columns = {};  ///< that no field reads, for splits: keys of JSON
};

enum class TextLevel { kCharacters, kBytes };
enum class TextWindows {
  kRandom,       ///< starts drawn again in every epoch
  kConsecutive,  ///< starts 0, stride, 2*stride, …
};

/// Windows of a row of tokens: `context` tokens, and the same shifted by one as targets. Range and
/// split count tokens here, and a split cuts the row in order.
struct WindowOptions {
  int64_t context = 64;
  TextWindows windows = TextWindows::kRandom;
  int64_t samples = 0;  ///< random windows in an epoch; 0: as many as cover the row once
  int64_t stride = 0;   ///< of consecutive windows; 0: context
  std::string token_field = "tokens";
  std::string target_field = "targets";
  /// The id after each document: windows then tell documents apart
  /// (data/datasets/token_windows.h).
  std::optional<int64_t> end_token = {};
};

/// The documents of text files.
enum class TextDocuments {
  kNone,     ///< the files are one text
  kFiles,    ///< each file is one
  kRecords,  ///< each record of JSON lines has one
};

/// Windows of text.
struct TextOptions {
  std::string path = {};
  std::vector<std::string> more_paths = {};
  TextLevel level = TextLevel::kCharacters;
  int64_t context = 64;
  TextWindows windows = TextWindows::kRandom;
  int64_t samples = 0;  ///< as in WindowOptions
  int64_t stride = 0;
  std::string token_field = "tokens";
  std::string target_field = "targets";
  std::vector<std::string> vocabulary =
      {};  ///< empty: from the file below, or the text's characters
  std::string vocabulary_file = {};
  TokenizerChoice tokenizer = {};  ///< instead of a vocabulary
  TextDocuments documents = TextDocuments::kNone;
  std::string key = {};        ///< of the text in a record
  std::string end_token = {};  ///< of a document; "": the tokenizer's
};

/// Windows of token ids in files: little-endian integers without a header.
struct TokensOptions {
  std::string path = {};
  std::vector<std::string> more_paths = {};
  int width = 2;                   ///< bytes of an id: 2 or 4
  int64_t vocabulary_size = 0;     ///< 0: that of the tokenizer
  TokenizerChoice tokenizer = {};  ///< that made the files, for text that is generated later
  std::string end_token = {};      ///< an id, or a token of the tokenizer; "": one document
  WindowOptions windows = {};
};

/// Image files, a folder for each class (with sub-folders); without class folders, images
/// without labels.
struct ImageFolderOptions {
  std::string path = {};
  std::vector<std::string> files = {};  ///< instead of a folder: these files, without labels
  int channels = 3;                     ///< 1 (grey) or 3 (RGB); images are [channels, h, w]
  DType dtype = DType::kU8;             ///< uint8, or uint16 to keep files of 16 bits
  bool reduce_16_bit = false;           ///< with uint8: files of 16 bits become 8; else an error
  std::string image_field = "image";
  std::string label_field = "label";
  std::vector<std::string> classes = {};  ///< folder names in order; empty: all, sorted
  /// The training data's classes, which number the labels here; folders may be missing.
  std::vector<std::string> known_classes = {};
};

/// Images with boxes: one COCO file, or a YOLO text file for each image. The fields are an image,
/// `boxes` float32 [n, 4] (left, top, right, bottom in pixels) and the class of each box, int64
/// [n].
struct BoxOptions {
  enum class Format { kCoco, kYolo };
  Format format = Format::kCoco;
  std::string annotations = {};  ///< COCO: the JSON file
  std::string images = {};       ///< folder; "" for COCO: that of the JSON file
  std::string labels = {};       ///< YOLO: folder of the text files; "": `labels` for `images`
  std::vector<std::string> classes = {};        ///< YOLO: names, by number
  std::vector<std::string> known_classes = {};  ///< the training data's, which number the classes
  int channels = 3;
  DType dtype = DType::kU8;    ///< uint8, or uint16 to keep PNG files of 16 bits
  bool reduce_16_bit = false;  ///< as in ImageFolderOptions
  int64_t max_boxes = 100;     ///< of an image; more are bad samples
  bool drops_outside = false;  ///< boxes outside of the image are left out; else a bad sample
  std::string image_field = "image", box_field = "boxes", label_field = "labels";
};

/// Windows of time series, which are the columns of records in the order of time: `past`
/// float32 [history, columns] (targets, covariates, known), `future` float32 [horizon, targets]
/// and, where there are some, `known` float32 [horizon, known]. Range and split count rows of each
/// series.
struct SeriesOptions {
  CsvFileOptions file = {};  ///< `fields` are not used
  std::vector<std::string> targets = {};
  std::vector<std::string> covariates = {};  ///< known up to the present
  std::vector<std::string> known = {};       ///< known for the future, too: weekday, price
  std::string group = {};                    ///< the column that tells series apart; "" for one
  /// The column of times, by which the rows of a series are sorted; "": they are in order.
  std::string time = {};
  /// To predict: one window for each series, whose past ends with its last row that has targets.
  /// There is no field `future`.
  bool forecasts = false;
  int64_t history = 1, horizon = 1;  ///< rows
  int64_t stride = 1;                ///< rows between the starts of windows
  bool overlap_history = true;       ///< a later part may look back at rows of the one before it
  Scaling scaling = Scaling::kNone;
  /// Per column of `past`, where they are known already: (x - shift) * factor.
  std::vector<double> shift = {}, factor = {};
};

/// Conversations or instructions as tokens for a language model.
struct ChatOptions {
  std::string path = {};  ///< of JSON lines
  std::vector<std::string> more_paths = {};
  TokenizerChoice tokenizer = {};
  std::string chat_template = {};  ///< Jinja file; "": that of the tokenizer
  std::string messages = "messages";
  std::string prompt = {}, completion = {};  ///< columns of plain instructions instead
  int64_t context = 1024;
  /// Several records in one sample. Not stated: if the model takes `segments`.
  std::optional<bool> pack = {};
  bool train_all = false;  ///< all tokens are targets, not only those of the assistant
  bool skips_bad = false;  ///< records that cannot be used are left out; else an error
};

struct DatasetOptions;
/// Several sources of the same fields as one. Without weights each sample comes once in an epoch;
/// with them, an epoch draws samples of each source in these proportions.
struct MixtureOptions {
  std::vector<std::pair<std::string, std::shared_ptr<const DatasetOptions>>> sources = {};
  std::vector<double> weights = {};  ///< one per source, or none
  int64_t samples = 0;               ///< of an epoch with weights; 0: as many as there are
};

/// Fields filled with random numbers, for benchmarks and tests.
struct RandomField {
  std::string name = {};
  DType dtype = DType::kF32;
  Dims shape = {};
  /// Uniform in [low, high); integers in the same way. Without bounds, floats are standard normal
  /// and integers 0 or 1.
  std::optional<double> low = {}, high = {};
};
struct RandomOptions {
  int64_t size = 1024;
  uint64_t seed = 0;
  std::vector<RandomField> fields = {};
};

/// Handwritten-looking digits that are drawn here: image uint8 [1, 28, 28] and label int64.
struct DigitsOptions {
  int64_t size = 20000;
  uint64_t seed = 0;
  std::string image_field = "image";
  std::string label_field = "label";
};

/// A dataset whose options only its own kind reads, as one that was registered at run time.
struct OwnSource {
  std::string kind = {};
  /// Opens the files and checks them; range and split are applied to the result.
  std::function<DatasetPtr()> open = {};
  /// The same options with another file or folder. None: the data is not one file.
  std::function<OwnSource(const std::string& path)> of_file = {};
};

using DatasetSource =
    std::variant<DigitsOptions, IdxOptions, CsvFileOptions, TextOptions, ImageFolderOptions,
                 BoxOptions, NpyOptions, NpzOptions, RandomOptions, Hdf5Options, SeriesOptions,
                 TokensOptions, ChatOptions, MixtureOptions, OwnSource>;

struct DatasetOptions {
  DatasetSource source = {};
  /// Samples [begin, end); negative numbers count from the end.
  std::optional<int64_t> begin = {}, end = {};
  /// Named shares of what remains, of which `part` is used. Shares are taken from a random order
  /// that `split_seed` gives, or in order.
  std::vector<std::pair<std::string, double>> split = {};
  std::string part = {};
  bool split_in_order = false;
  uint64_t split_seed = 0;
  /// Instead of single samples at random: every class in its share (`stratify`), groups as a whole
  /// (`group`), or in the order of a column, samples of one time together (`time`). At most one.
  std::string split_stratify = {}, split_group = {}, split_time = {};
  /// Above 0, instead of shares: part "valid" is fold `fold`, part "train" all the others.
  int64_t folds = 0, fold = 0;
  /// Scaling that the training data fitted, for kinds that have none of their own (npz, npy).
  std::vector<Fitted> scales = {};
};

/// One weight per sample of the dataset that these options made; empty where there are none.
std::vector<double> mixture_weights(const DatasetOptions& options, const Dataset& dataset);

/// The kind as configs name it.
std::string kind_of(const DatasetOptions& options);
/// Opens the files, checks them and returns the dataset. kData if files lack something, kConfig for
/// options that contradict each other; an empty dataset is an error.
DatasetPtr make_dataset(const DatasetOptions& options);
/// Makes a dataset (validation, or data to predict) use what the training data fitted: scaling,
/// vocabularies, class lists. Fields are matched by name. An explicit `shift` and `factor` stays.
/// kConfig where the options ask for statistics that the training data does not have.
void apply_fitted(DatasetOptions& options, const std::vector<Fitted>& fitted);
/// The options of another file or folder that is read in the same way: its fields, but not its
/// range and split. kUsage for kinds of data that are not one file or folder, and for other files
/// than the kind has.
DatasetOptions of_file(const DatasetOptions& like, const std::string& path);
/// Decides whether records share samples, for a model that takes a field `segments` or not. kConfig
/// for samples of several documents if it does not: they would attend to each other.
void choose_packing(DatasetOptions& options, bool takes_segments);
/// Known from the options of a training dataset without opening it: statistics and vocabularies
/// that are written there. For models that were saved without `fitted.json`.
std::vector<Fitted> stated_fitted(const DatasetOptions& options);

/// [begin, end) of `size` samples that range and split leave, and whether these are places in the
/// random order.
struct Part {
  int64_t begin = 0, end = 0;
  bool permuted = false;
};
Part resolve_part(const DatasetOptions& options, int64_t size, bool in_order);

}  // namespace paddle::data
