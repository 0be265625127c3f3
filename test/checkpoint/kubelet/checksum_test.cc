// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/checksum.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace devmgr::kubelet_checkpoint {
namespace {

std::uint32_t Fnv1a32(std::string_view text) {
  return ExtendFnv1a32(kFnv1a32OfNothing, text);
}

TEST(ChecksumTest, FnvHasItsPublishedValues) {
  EXPECT_EQ(Fnv1a32(""), 0x811C9DC5U);
  EXPECT_EQ(Fnv1a32("a"), 0xE40C292CU);
  EXPECT_EQ(Fnv1a32("foobar"), 0xBF9CF968U);
  EXPECT_EQ(ExtendFnv1a32(Fnv1a32("foo"), "bar"), 0xBF9CF968U);
}

TEST(ChecksumTest, CrcHasItsPublishedValues) {
  EXPECT_EQ(Crc32(""), 0U);
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926U);
}

TEST(ChecksumTest, BytesAreUnsigned) {
  EXPECT_EQ(Fnv1a32("\xFF"), (0x811C9DC5U ^ 0xFFU) * 0x01000193U);
  EXPECT_EQ(Crc32("\xFF"), 0xFF000000U);
}

}  // namespace
}  // namespace devmgr::kubelet_checkpoint
