// SPDX-License-Identifier: Apache-2.0
#include "source/api/object_store.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace devmgr::apiserver {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ClassText(int version, const std::string& selectors) {
  return fmt::format(
      R"({{"metadata":{{"name":"gpu","uid":"u-1","resourceVersion":"{}"}},)"
      R"("spec":{{"selectors":{}}}}})",
      version, selectors);
}
std::string ClassWith(int version, const std::string& expression) {
  return ClassText(
      version, fmt::format(R"([{{"cel":{{"expression":"{}"}}}}])", expression));
}

class ObjectStoreTest : public ::testing::Test {
 protected:
  const DeviceClass* Class() const {
    const auto* stored = store.objects().Find("u-1");
    return stored == nullptr || (*stored)->object == nullptr
               ? nullptr
               : std::get_if<DeviceClass>((*stored)->object.get());
  }

  ObjectStore store{ResourceCollection("v1", "DeviceClass")};
};

TEST_F(ObjectStoreTest, UsesAClassWithAnExpressionThatIsNotReadHereAndSaysSo) {
  store.Upsert(ClassWith(1, "device.drivr == 'a'"));
  ASSERT_NE(Class(), nullptr);
  EXPECT_EQ(Class()->selectors.at(0), "device.drivr == 'a'");
  EXPECT_TRUE(store.IsDecoded());
  ASSERT_EQ(store.problems().count("u-1"), 1u);
  const ObjectProblem& problem = store.problems().at("u-1");
  EXPECT_EQ(problem.object_kind, "DeviceClass");
  EXPECT_EQ(problem.object.name, "gpu");
  EXPECT_THAT(problem.problem,
              AllOf(HasSubstr("'gpu': "),
                    HasSubstr("spec.selectors[0].cel.expression: line 1, "
                              "column 7 of the expression: undefined field")));

  store.Upsert(ClassWith(2, "device.driver == 'a'"));
  EXPECT_EQ(Class()->selectors.at(0), "device.driver == 'a'");
  EXPECT_THAT(store.problems(), IsEmpty());
}

// They are as deep as what they are about, and one level for each `f:`.
TEST_F(ObjectStoreTest, ReadsNothingOfManagedFields) {
  const std::string deep = std::string(1'000, '[') + std::string(1'000, ']');
  store.Upsert(fmt::format(
      R"({{"metadata":{{"managedFields":[{}],"name":"gpu","uid":"u-1",)"
      R"("resourceVersion":"1"}},"spec":{{"selectors":[)"
      R"({{"cel":{{"expression":"device.driver == 'a'"}}}}]}}}})",
      deep));
  ASSERT_NE(Class(), nullptr);
  EXPECT_EQ(Class()->metadata.name, "gpu");
  EXPECT_EQ(Class()->selectors.at(0), "device.driver == 'a'");
  EXPECT_THAT(store.problems(), IsEmpty());
}

TEST_F(ObjectStoreTest, NamesAClassThatCannotBeDecoded) {
  store.Upsert(ClassText(1, "7"));
  EXPECT_EQ(Class(), nullptr);
  EXPECT_FALSE(store.IsDecoded());
  ASSERT_EQ(store.problems().count("u-1"), 1u);
  EXPECT_EQ(store.problems().at("u-1").object.name, "gpu");
  EXPECT_THAT(store.problems().at("u-1").problem, HasSubstr("selectors"));
}

TEST_F(ObjectStoreTest, ForgetsTheRemarkWithTheObject) {
  store.Upsert(ClassWith(1, "device.drivr == 'a'"));
  store.BeginList();
  store.EndList();
  EXPECT_THAT(store.objects(), IsEmpty());
  EXPECT_THAT(store.problems(), IsEmpty());
}

}  // namespace
}  // namespace devmgr::apiserver
