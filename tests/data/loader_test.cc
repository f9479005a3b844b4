#include "data/loader.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "data/loading/batch_timing.h"
#include "data/options.h"

namespace paddle::data {
namespace {

/// Sample i is the numbers i and i + 0.5; chosen samples are bad, NaN, slow or of another size.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size) : size_(size) {
    Field x, y;
    x.name = "x", x.dtype = DType::kF32, x.shape = {2};
    y.name = "y", y.dtype = DType::kI64;
    fields_ = {x, y};
  }
  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    ++reads;
    if (std::this_thread::get_id() == made_by_) ++reads_here;
    if (slow && index % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (bad.contains(index)) fail(ErrorCode::kData, location(index, -1, -1), ": broken");
    out.resize(2);
    out[0].reset(DType::kF32, Dims{wide.contains(index) ? 3 : 2});
    out[0].data<float>()[0] =
        nan.contains(index) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(index);
    out[0].data<float>()[1] = static_cast<float>(index) + 0.5f;
    out[1].reset(DType::kI64, Dims{});
    out[1].data<int64_t>()[0] = index;
  }
  std::string location(int64_t index, int64_t, int64_t element) const override {
    return element < 0 ? str("row ", index) : str("row ", index, ", column ", element);
  }
  std::set<int64_t> bad, nan, wide;
  bool slow = false;
  mutable std::atomic<int64_t> reads = 0;
  mutable std::atomic<int64_t> reads_here = 0;  ///< in the thread of the test

 private:
  int64_t size_;
  std::vector<Field> fields_;
  std::thread::id made_by_ = std::this_thread::get_id();
};

std::vector<int64_t> labels(const Batch& batch) {
  const Array& y = batch.arrays[1];
  return {y.data<int64_t>(), y.data<int64_t>() + batch.samples};
}

std::vector<std::vector<int64_t>> all(Loader& loader, size_t most = 1000) {
  std::vector<std::vector<int64_t>> out;
  while (out.size() < most) {
    const auto batch = loader.next();
    if (!batch) break;
    EXPECT_EQ(batch->arrays[0].shape, (Dims{batch->samples, 2}));
    out.push_back(labels(*batch));
  }
  return out;
}

TEST(Loader, BatchesInOrderWithAShortLastOne) {
  Loader loader(std::make_shared<Numbers>(10), {.batch_size = 4, .epochs = 1});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  EXPECT_EQ(all(loader), (std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.position(), (LoaderPosition{1, 0}));
  Loader dropping(std::make_shared<Numbers>(10), {.batch_size = 4, .drop_last = true, .epochs = 2});
  EXPECT_EQ(dropping.batches_per_epoch(), 2);
  EXPECT_EQ(all(dropping).size(), 4u);
}

TEST(Loader, ShufflesByEpochAndVisitsEverySampleOnce) {
  Loader loader(std::make_shared<Numbers>(100),
                {.batch_size = 10, .shuffle = true, .seed = 3, .epochs = 2});
  const auto batches = all(loader);
  std::vector<int64_t> first, second;
  for (size_t i = 0; i < 20; ++i)
    (i < 10 ? first : second)
        .insert((i < 10 ? first : second).end(), batches[i].begin(), batches[i].end());
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 100u);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 100u);
  Loader again(std::make_shared<Numbers>(100),
               {.batch_size = 10, .shuffle = true, .seed = 3, .epochs = 2});
  EXPECT_EQ(all(again), batches);
  Loader other(std::make_shared<Numbers>(100),
               {.batch_size = 10, .shuffle = true, .seed = 4, .epochs = 2});
  EXPECT_NE(all(other), batches);
}

TEST(Loader, TheNumberOfWorkersChangesNothing) {
  std::vector<std::vector<int64_t>> expected;
  for (const int workers : {0, 1, 2, 5}) {
    auto data = std::make_shared<Numbers>(103);
    data->slow = true;
    Loader loader(data, {.batch_size = 8, .shuffle = true, .workers = workers, .epochs = 3});
    const auto batches = all(loader);
    if (workers == 0) expected = batches;
    EXPECT_EQ(batches, expected) << workers;
  }
}

TEST(BatchTiming, CheapBatchesAreMadeByTheCaller) {
  BatchTiming timing;
  const auto batches = [&](int count, double making, double using_it) {
    for (int i = 0; i < count; ++i) {
      timing.note_using(using_it);
      timing.note_making(making);
    }
  };
  batches(7, 1e-5, 1e-2);
  EXPECT_FALSE(timing.caller_makes()) << "too few batches were seen";
  batches(1, 1e-5, 1e-2);
  EXPECT_TRUE(timing.caller_makes());
  batches(20, 3e-4, 1e-2);  // 3%: neither cheap nor a reason to change
  EXPECT_TRUE(timing.caller_makes());
  batches(8, 1e-3, 1e-2);
  EXPECT_FALSE(timing.caller_makes());
  batches(20, 3e-4, 1e-2);
  EXPECT_FALSE(timing.caller_makes());
  // Every fourth one is expensive: the others do not count.
  for (int i = 0; i < 32; ++i) batches(1, i % 4 ? 1e-5 : 1e-2, 1e-2);
  EXPECT_FALSE(timing.caller_makes());
  // One was interrupted.
  batches(4, 1e-5, 1e-2);
  batches(1, 1e-2, 1e-2);
  batches(3, 1e-5, 1e-2);
  EXPECT_TRUE(timing.caller_makes());
}

TEST(Loader, MakesCheapBatchesInTheThreadOfTheCaller) {
  const LoaderOptions options{.batch_size = 4, .shuffle = true, .workers = 2, .epochs = 8};
  const auto read_here = [&](bool slow, std::vector<std::vector<int64_t>>& out) {
    auto data = std::make_shared<Numbers>(40);
    data->slow = slow;
    Loader loader(data, options);
    while (const auto batch = loader.next()) {
      out.push_back(labels(*batch));
      std::this_thread::sleep_for(std::chrono::milliseconds(slow ? 1 : 40));
    }
    EXPECT_EQ(data->reads.load(), 320);
    return data->reads_here.load();
  };
  std::vector<std::vector<int64_t>> cheap, expensive;
  EXPECT_GT(read_here(false, cheap), 160);
  EXPECT_LT(read_here(true, expensive), 160);
  EXPECT_EQ(cheap, expensive);
  Loader serial(std::make_shared<Numbers>(40),
                {.batch_size = 4, .shuffle = true, .workers = 0, .epochs = 8});
  EXPECT_EQ(all(serial), cheap);
}

TEST(Loader, ResumesAtTheExactSampleWithoutReadingTheRest) {
  for (const int workers : {0, 2}) {
    const LoaderOptions options{
        .batch_size = 8, .shuffle = true, .seed = 9, .workers = workers, .epochs = 4};
    Loader loader(std::make_shared<Numbers>(50), options);
    const auto whole = all(loader);
    for (size_t stop = 0; stop < whole.size(); stop += 5) {
      Loader before(std::make_shared<Numbers>(50), options);
      all(before, stop);
      const LoaderPosition position = before.position();
      auto data = std::make_shared<Numbers>(50);
      Loader after(data, options);
      after.seek(position);
      const auto rest = all(after);
      EXPECT_EQ(rest, (std::vector<std::vector<int64_t>>(
                          whole.begin() + static_cast<std::ptrdiff_t>(stop), whole.end())));
    }
  }
  auto data = std::make_shared<Numbers>(1000000);
  Loader loader(data, {.batch_size = 4, .shuffle = true});
  loader.seek({7, 999000});
  loader.next();
  EXPECT_EQ(data->reads, 4);
  loader.seek({0, 10});
  EXPECT_EQ(loader.next()->first, 10);
  EXPECT_THROW(loader.seek({0, 1000001}), Error);
}

TEST(Loader, LooksAtTheNextBatch) {
  for (const int workers : {0, 2}) {
    const LoaderOptions options{
        .batch_size = 8, .shuffle = true, .seed = 9, .workers = workers, .epochs = 2};
    Loader plain(std::make_shared<Numbers>(50), options);
    const auto whole = all(plain);
    Loader loader(std::make_shared<Numbers>(50), options);
    for (const auto& wanted : whole) {
      const LoaderPosition position = loader.position();
      ASSERT_NE(loader.peek(), nullptr);
      EXPECT_EQ(labels(*loader.peek()), wanted);
      EXPECT_EQ(loader.position(), position);
      EXPECT_EQ(labels(*loader.next()), wanted);
    }
    EXPECT_EQ(loader.peek(), nullptr);
    loader.seek({0, 0});
    for (size_t i = 0; i < whole.size(); ++i) {
      const LoaderPosition position = loader.position();
      const data::Batch* const later = loader.peek(2);
      ASSERT_EQ(later != nullptr, i + 2 < whole.size());
      if (later) {
        EXPECT_EQ(labels(*later), whole[i + 2]);
      }
      EXPECT_EQ(labels(*loader.peek(0)), whole[i]);
      EXPECT_EQ(loader.position(), position);
      EXPECT_EQ(labels(*loader.next()), whole[i]);
    }
    EXPECT_FALSE(loader.next().has_value());
    loader.seek({0, 8});
    loader.peek();
    loader.seek({0, 0});
    EXPECT_EQ(labels(*loader.next()), whole[0]);
    loader.peek();
    EXPECT_TRUE(loader.read_rows([](int64_t, int64_t) { return true; }));
    EXPECT_EQ(labels(*loader.next()), whole[1]);
  }
}

TEST(Loader, ErrorsArriveInTheirTurn) {
  for (const int workers : {0, 3}) {
    auto data = std::make_shared<Numbers>(40);
    data->bad = {17};
    Loader loader(data, {.batch_size = 4, .workers = workers});
    EXPECT_EQ(all(loader, 4).size(), 4u);
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        loader.next();
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData);
        EXPECT_EQ(error.message(), "row 17: broken");
      }
    }
    loader.seek({0, 20});
    EXPECT_EQ(labels(*loader.next()), (std::vector<int64_t>{20, 21, 22, 23}));
  }
}

TEST(Loader, SkipsBadSamplesAndListsThem) {
  for (const int workers : {0, 2}) {
    auto data = std::make_shared<Numbers>(12);
    data->bad = {1, 4, 5, 6, 7};
    Loader loader(data, {.batch_size = 4,
                         .workers = workers,
                         .epochs = 1,
                         .on_bad_sample = BadSamplePolicy::kSkip,
                         .max_bad_rate = 0.5});
    EXPECT_EQ(all(loader), (std::vector<std::vector<int64_t>>{{0, 2, 3}, {8, 9, 10, 11}}));
    EXPECT_EQ(loader.skipped_count(), 5);
    EXPECT_EQ(loader.skipped()[0].index, 1);
    EXPECT_EQ(loader.skipped()[0].reason, "row 1: broken");
  }
}

TEST(Loader, TooManyBadSamplesEndTheRun) {
  auto data = std::make_shared<Numbers>(100);
  for (int64_t i = 50; i < 60; ++i) data->bad.insert(i);
  Loader loader(data, {.batch_size = 10,
                       .workers = 2,
                       .epochs = 1,
                       .on_bad_sample = BadSamplePolicy::kSkip,
                       .max_bad_rate = 0.05});
  EXPECT_EQ(all(loader, 5).size(), 5u);
  try {
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("6 of 100"), std::string::npos) << error.message();
  }
}

TEST(Loader, ARunWithoutGoodSamplesEnds) {
  auto data = std::make_shared<Numbers>(3);
  data->bad = {0, 1, 2};
  Loader loader(data,
                {.batch_size = 2, .on_bad_sample = BadSamplePolicy::kSkip, .max_bad_rate = 1});
  EXPECT_THROW(loader.next(), Error);
}

TEST(Loader, NanPolicies) {
  auto data = std::make_shared<Numbers>(4);
  data->nan = {2};
  LoaderOptions options{
      .batch_size = 4, .epochs = 1, .on_bad_sample = BadSamplePolicy::kSkip, .max_bad_rate = 1};
  try {
    Loader(data, options).next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("row 2, column 0"), std::string::npos) << error.message();
  }
  options.nan = NanPolicy::kSkip;
  Loader skipping(data, options);
  EXPECT_EQ(all(skipping)[0], (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(skipping.skipped()[0].reason, "row 2, column 0: NaN");
  options.nan = NanPolicy::kKeep;
  Loader keeping(data, options);
  EXPECT_TRUE(std::isnan(keeping.next()->arrays[0].number(4)));
}

TEST(Loader, ChecksRangesAndShapes) {
  auto data = std::make_shared<Numbers>(12);
  try {
    Loader loader(data, {.batch_size = 12, .ranges = {{"y", 0, 10}}});
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("y 10 is outside 0..9"), std::string::npos) << error.message();
  }
  data->wide = {3};
  try {
    Loader(data, {.batch_size = 12}).next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("row 3"), std::string::npos) << error.message();
  }
  EXPECT_THROW(Loader(data, {.batch_size = 0}), Error);
  EXPECT_THROW(Loader(data, {.batch_size = 13, .drop_last = true}), Error);
  EXPECT_THROW(Loader(data, {.batch_size = 4, .ranges = {{"z", 0, 1}}}), Error);
}

TEST(Loader, PrefetchIsBoundedInBytes) {
  auto data = std::make_shared<Numbers>(100000);
  // A sample has 16 bytes: room for 3 batches of 10.
  Loader loader(data, {.batch_size = 10, .workers = 4, .prefetch_bytes = 480});
  EXPECT_EQ(loader.batch_bytes(), 160u);
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(data->reads, 40);
}

TEST(Loader, StopsCleanlyInTheMiddle) {
  for (int round = 0; round < 20; ++round) {
    auto data = std::make_shared<Numbers>(1000);
    data->slow = true;
    Loader loader(data, {.batch_size = 16, .workers = 3});
    if (round % 2) loader.next();
  }
}

TEST(Loader, BatchesOutliveTheLoaderAndAreNotOverwritten) {
  std::vector<Batch> kept;
  {
    Loader loader(std::make_shared<Numbers>(64), {.batch_size = 8, .workers = 2, .epochs = 1});
    while (auto batch = loader.next()) kept.push_back(std::move(*batch));
  }
  for (size_t b = 0; b < kept.size(); ++b)
    EXPECT_EQ(labels(kept[b])[3], static_cast<int64_t>(b * 8 + 3));
}

TEST(Loader, RanksShareEachBatch) {
  std::vector<int64_t> seen;
  for (int64_t rank = 0; rank < 2; ++rank) {
    Loader loader(std::make_shared<Numbers>(10),
                  {.batch_size = 4, .epochs = 1, .rank = rank, .ranks = 2});
    for (const auto& batch : all(loader)) seen.insert(seen.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 4, 5, 8, 2, 3, 6, 7, 9}));
}

TEST(Loader, AugmentationDependsOnTheSampleNotOnTheWorkers) {
  DatasetOptions digits;
  digits.source = DigitsOptions{.size = 64};
  const std::vector<TransformOptions> transforms = {
      {.kind = TransformKind::kPad, .fields = {"image"}, .pad = {3}},
      {.kind = TransformKind::kRandomCrop, .fields = {"image"}, .height = 28, .width = 28},
      {.kind = TransformKind::kHorizontalFlip, .fields = {"image"}},
      {.kind = TransformKind::kScale, .fields = {"image"}, .factor = 1.0 / 255}};
  std::vector<std::vector<float>> expected;
  for (const int workers : {0, 2}) {
    Loader loader(make_dataset(digits), {.batch_size = 16,
                                         .shuffle = true,
                                         .workers = workers,
                                         .epochs = 2,
                                         .transforms = transforms});
    EXPECT_EQ(loader.fields()[0].dtype, DType::kF32);
    std::vector<std::vector<float>> images;
    while (const auto batch = loader.next()) {
      EXPECT_EQ(batch->arrays[0].shape, (Dims{16, 1, 28, 28}));
      const float* data = batch->arrays[0].data<float>();
      images.emplace_back(data, data + batch->arrays[0].size());
    }
    if (workers == 0) expected = images;
    EXPECT_EQ(images, expected);
    EXPECT_NE(images[0], images[4]);
  }
}

TEST(Loader, RangesAreCheckedAfterTransformsAndMaySpareANumber) {
  auto data = std::make_shared<Numbers>(12);
  LoaderOptions options{.batch_size = 12, .epochs = 1};
  for (const int workers : {0, 2}) {
    options.workers = workers;
    Loader loader(data, options);
    loader.require({{"y", 0, 10, 11}});
    try {
      loader.next();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      EXPECT_EQ(error.message(), "row 10, column 0: y 10 is outside 0..9, which the model takes");
    }
  }
  options.on_bad_sample = BadSamplePolicy::kSkip;
  options.max_bad_rate = 0.5;
  Loader skipping(data, options);
  skipping.require({{"y", 0, 10, 11}});
  const auto batch = skipping.next();
  EXPECT_EQ(batch->samples, 11);
  EXPECT_EQ(batch->indices, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11}));
  EXPECT_EQ(skipping.skipped()[0].index, 10);
  EXPECT_THROW(skipping.require({{"z", 0, 1}}), Error);
}

}  // namespace
}  // namespace paddle::data
