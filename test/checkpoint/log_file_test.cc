// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/crc32c.h"

namespace devmgr::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kHeader = 7;

/// A record as RocksDB writes it: checksum, length, type, payload.
std::string Record(const std::string& payload, char type = 1) {
  const std::uint32_t masked = MaskCrc32c(Crc32c(type + payload));
  std::string record;
  for (int shift = 0; shift < 32; shift += 8) {
    record += static_cast<char>(masked >> shift);
  }
  record += static_cast<char>(payload.size());
  record += static_cast<char>(payload.size() >> 8);
  return record + type + payload;
}

std::string Payload(std::size_t size) {
  std::string payload;
  for (std::size_t i = 0; i < size; ++i) {
    payload += static_cast<char>('a' + i % 23);
  }
  return payload;
}

TEST(Crc32cTest, IsTheCastagnoliOne) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);  // RFC 3720, as is the next
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), Crc32c("123456789"));
  // However long, wherever it begins, with the processor's instruction or not.
  std::string text(100, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * i);
  }
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; begin + size <= text.size(); ++size) {
      const auto part = std::string_view(text).substr(begin, size);
      ASSERT_EQ(ExtendCrc32c(7, part), ExtendCrc32cByTable(7, part)) << part;
    }
  }
}

TEST(LogFileTest, ReadsWholeRecords) {
  const LogContents log = ReadLog(Record("one") + Record("") + Record("three"));
  EXPECT_THAT(log.records, ElementsAre("one", "", "three"));
  EXPECT_FALSE(log.torn.has_value());
  EXPECT_THAT(log.damage, IsEmpty());
}

TEST(LogFileTest, JoinsWhatGoesOnInTheNextBlock) {
  const std::string first = Payload(32 * 1024 - kHeader);
  const LogContents log =
      ReadLog(Record(first, 2) + Record(first, 3) + Record("end", 4));
  EXPECT_THAT(log.records, ElementsAre(first + first + "end"));
}

TEST(LogFileTest, SkipsTheRestOfABlockThatHoldsNoHeader) {
  const std::string big = Payload(32 * 1024 - 2 * kHeader + 3);
  const LogContents log =
      ReadLog(Record(big) + std::string(4, '\0') + Record("next"));
  EXPECT_THAT(log.records, ElementsAre(big, "next"));
}

TEST(LogFileTest, TellsATornTailAtEveryLength) {
  const std::string whole = Record("one");
  const std::string last = Record(Payload(300));
  for (std::size_t size = 1; size < last.size(); ++size) {
    const LogContents log = ReadLog(whole + last.substr(0, size));
    EXPECT_THAT(log.records, ElementsAre("one"));
    ASSERT_TRUE(log.torn.has_value()) << size;
    EXPECT_EQ(log.torn->offset, whole.size());
    EXPECT_EQ(log.torn->bytes, size);
    EXPECT_THAT(log.damage, IsEmpty()) << size;
  }
}

TEST(LogFileTest, TellsAPayloadThatWasToGoOn) {
  const std::string first = Record(Payload(32 * 1024 - kHeader), 2);
  const LogContents log = ReadLog(first);
  ASSERT_TRUE(log.torn.has_value());
  EXPECT_EQ(log.torn->offset, 0u);
  EXPECT_EQ(log.torn->bytes, first.size());
}

TEST(LogFileTest, TellsAHoleThatTheFileSystemLeft) {
  const std::string whole = Record("one");
  std::string log = whole + Record(Payload(2'000));
  log.resize(1'024);
  log.resize(4'096, '\0');
  const LogContents contents = ReadLog(log);
  EXPECT_THAT(contents.records, ElementsAre("one"));
  ASSERT_TRUE(contents.torn.has_value());
  EXPECT_EQ(contents.torn->offset, whole.size());
  EXPECT_THAT(contents.damage, IsEmpty());
}

TEST(LogFileTest, IgnoresSpaceThatWasAllocatedAhead) {
  const LogContents log = ReadLog(Record("one") + std::string(10'000, '\0'));
  EXPECT_THAT(log.records, ElementsAre("one"));
  EXPECT_FALSE(log.torn.has_value());
  EXPECT_THAT(log.damage, IsEmpty());
}

/// What used to be dropped as if it were torn: answered records behind a length
/// that one flipped bit made reach beyond the end of the file.
TEST(LogFileTest, AFlippedBitIsNeverATornTail) {
  const std::string good = Record(Payload(40)) + Record("two") + Record("3");
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const LogContents log = ReadLog(bytes);
    EXPECT_FALSE(log.torn.has_value()) << bit;
    ASSERT_EQ(log.damage.size(), 1u) << bit;
    EXPECT_LE(log.damage[0].offset, bit / 8);
    // The other records are found.
    EXPECT_EQ(log.records.size(), 2u) << bit;
  }
}

TEST(LogFileTest, NamesADamagedLength) {
  std::string bytes = Record("one") + Record("two");
  bytes[5] = 1;  // 259
  const LogContents log = ReadLog(bytes);
  ASSERT_EQ(log.damage.size(), 1u);
  EXPECT_THAT(log.damage[0].what,
              HasSubstr("it says 259 bytes, the checksum is that of 3"));
  EXPECT_THAT(log.records, ElementsAre("two"));
}

TEST(LogFileTest, TellsPartsOfAPayloadThatDoNotBelongTogether) {
  EXPECT_EQ(ReadLog(Record("a", 4)).damage.size(), 1u);
  EXPECT_EQ(ReadLog(Record("a", 2) + Record("b", 1)).damage.size(), 1u);
}

}  // namespace
}  // namespace devmgr::checkpoint
