// SPDX-License-Identifier: Apache-2.0
//
// Map entries are fields of number 1 that may come in any order.
#include <devmgr/wire/dra/v1/dra.pb.h>
#include <devmgr/wire/dra/v1beta1/dra.pb.h>
#include <gtest/gtest.h>

#include <string>

#include "conformance/deterministic.h"
#include "conformance/wire_samples.h"

namespace devmgr::conformance {
namespace {

namespace v1 = wire::dra::v1;
namespace v1beta1 = wire::dra::v1beta1;

template <typename Response>
class MapEntriesTest : public ::testing::Test {};
using MapResponses = ::testing::Types<v1::NodePrepareResourcesResponse,
                                      v1::NodeUnprepareResourcesResponse,
                                      v1beta1::NodePrepareResourcesResponse,
                                      v1beta1::NodeUnprepareResourcesResponse>;
TYPED_TEST_SUITE(MapEntriesTest, MapResponses);

template <typename Response>
std::string OneEntry(const char* uid, const char* error) {
  Response response;
  (*response.mutable_claims())[uid].set_error(error);
  return response.SerializeAsString();
}

TYPED_TEST(MapEntriesTest, AnyOrderIsTheSameMessage) {
  const std::string a = OneEntry<TypeParam>(kUidA, "");
  const std::string b = OneEntry<TypeParam>(kUidB, "not allocated");
  TypeParam forwards;
  TypeParam backwards;
  ASSERT_TRUE(forwards.ParseFromString(a + b));
  ASSERT_TRUE(backwards.ParseFromString(b + a));
  EXPECT_EQ(forwards.claims().size(), 2u);
  EXPECT_EQ(forwards.claims().at(kUidB).error(), "not allocated");
  EXPECT_EQ(Deterministic(forwards), Deterministic(backwards));
}

TYPED_TEST(MapEntriesTest, TheLastOfTwoEntriesWithOneKeyCounts) {
  TypeParam response;
  ASSERT_TRUE(response.ParseFromString(OneEntry<TypeParam>(kUidA, "first") +
                                       OneEntry<TypeParam>(kUidA, "last")));
  ASSERT_EQ(response.claims().size(), 1u);
  EXPECT_EQ(response.claims().at(kUidA).error(), "last");
}

}  // namespace
}  // namespace devmgr::conformance
