// SPDX-License-Identifier: Apache-2.0
#include "cdi/qualified_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/status.h"

namespace devmgr::cdi {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view device) {
  return MessageOf(CheckQualifiedName(device));
}

void ExpectParts(std::string_view device, std::string_view vendor,
                 std::string_view device_class, std::string_view name) {
  const auto parsed = ParseCdiName(device);
  ASSERT_TRUE(parsed.ok()) << MessageOf(parsed.status());
  EXPECT_EQ(parsed->vendor, vendor);
  EXPECT_EQ(parsed->device_class, device_class);
  EXPECT_EQ(parsed->name, name);
}

void ExpectUnqualified(std::string_view device) {
  const QualifiedName split = SplitQualifiedName(device);
  EXPECT_EQ(split.vendor, "") << device;
  EXPECT_EQ(split.device_class, "") << device;
  EXPECT_EQ(split.name, device);
  const auto parsed = ParseCdiName(device);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(parsed.status()), HasSubstr("unqualified device"));
  EXPECT_THAT(MessageOf(parsed.status()), HasSubstr("missing"));
}

TEST(QualifiedName, SplitsIntoVendorClassAndName) {  // BO-001
  ExpectParts("vendor.com/class=dev", "vendor.com", "class", "dev");
}

TEST(QualifiedName, AcceptsPartsOfOneCharacter) {  // BO-002
  ExpectParts("a/b=c", "a", "b", "c");
  ExpectParts("aa/b=cc", "aa", "b", "cc");
  ExpectParts("a/bb=cc", "a", "bb", "cc");
}

TEST(QualifiedName, LetsADigitBeginADeviceName) {  // BO-003
  ExpectParts("vendor.com/class=0", "vendor.com", "class", "0");
}

TEST(QualifiedName, AcceptsDotsAndUnderscoresInTheClass) {  // BO-004
  ExpectParts("vendor1.com/class.subclass=dev1", "vendor1.com",
              "class.subclass", "dev1");
  ExpectParts("other-vendor1.com/class_1=dev_1", "other-vendor1.com", "class_1",
              "dev_1");
}

TEST(QualifiedName, TakesEmptyTextAndPathsAsUnqualified) {  // BO-005
  for (const char* device : {"", "/dev/nvidia0", "/dev/x/y=z"}) {
    ExpectUnqualified(device);
  }
}

TEST(QualifiedName, TakesNamesWithAMissingPartAsUnqualified) {  // BO-006
  for (const char* device :
       {"vendor.com/class", "vendor.com/class=", "=dev", "/class=dev",
        "vendor.com/=dev", "class=dev", "vendor.com=dev"}) {
    ExpectUnqualified(device);
  }
  EXPECT_THAT(ErrorOf("vendor.com/class="), HasSubstr("missing device name"));
  EXPECT_THAT(ErrorOf("vendor.com/=dev"), HasSubstr("missing class"));
  EXPECT_THAT(ErrorOf("=dev"), HasSubstr("missing vendor"));
}

TEST(QualifiedName, NamesTheInvalidPartAndItsRule) {  // BO-007
  const struct {
    const char* device;
    const char* part;
    const char* rule;
  } kCases[] = {
      {"_invalid.com/class=dev", "invalid vendor '_invalid.com'", "start"},
      {"invalid2.com-/class=dev", "invalid vendor 'invalid2.com-'", "end"},
      {"invalid3.com/_class=dev", "invalid class '_class'", "start"},
      {"invalid4.com/class_=dev", "invalid class 'class_'", "end"},
      {"invalid5.com/class=-dev", "invalid device name '-dev'", "start"},
      {"invalid6.com/class=dev:", "invalid device name 'dev:'", "end"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ErrorOf(c.device), HasSubstr(c.part));
    EXPECT_THAT(ErrorOf(c.device), HasSubstr(c.rule));
    const QualifiedName split = SplitQualifiedName(c.device);
    EXPECT_EQ(split.vendor + "/" + split.device_class + "=" + split.name,
              c.device);
    EXPECT_NE(split.vendor, "");
  }
}

TEST(QualifiedName, RefusesWildcards) {  // BO-008
  const QualifiedName split = SplitQualifiedName("*.com/*dev=*gpu*");
  EXPECT_EQ(split.vendor, "*.com");
  EXPECT_EQ(split.device_class, "*dev");
  EXPECT_EQ(split.name, "*gpu*");
  EXPECT_THAT(ErrorOf("*.com/*dev=*gpu*"), HasSubstr("invalid vendor"));
}

TEST(QualifiedName, AllowsColonsInDeviceNamesOnly) {  // BO-009
  ExpectParts("v/c=a:1.2_3-4", "v", "c", "a:1.2_3-4");
  EXPECT_THAT(ErrorOf("v:1/c=a"), HasSubstr("invalid vendor"));
  EXPECT_THAT(ErrorOf("v/c:1=a"), HasSubstr("invalid class"));
}

TEST(QualifiedName, RefusesWhatIsNotAscii) {  // BO-010
  EXPECT_THAT(ErrorOf("v\xC3\xA9n/c=a"), HasSubstr("invalid vendor"));
  EXPECT_THAT(ErrorOf("\xC3\xA9/c=a"), HasSubstr("invalid vendor"));
  EXPECT_THAT(ErrorOf("v/c\xC3\xA9=a"), HasSubstr("invalid class"));
  EXPECT_THAT(ErrorOf("v/c=a "), HasSubstr("invalid device name"));
  const std::string_view with_nul("v/c=a\0b", 7);
  EXPECT_THAT(ErrorOf(with_nul), HasSubstr("'a\\x00b'"));
  EXPECT_EQ(SplitQualifiedName(with_nul).name, std::string("a\0b", 3));
}

TEST(QualifiedName, CutsAtTheFirstSeparators) {
  const QualifiedName split = SplitQualifiedName("v/c/d=a=b");
  EXPECT_EQ(split.vendor, "v");
  EXPECT_EQ(split.device_class, "c/d");
  EXPECT_EQ(split.name, "a=b");
  EXPECT_THAT(ErrorOf("v/c/d=a"), HasSubstr("invalid class"));
  EXPECT_THAT(ErrorOf("v/c=a=b"), HasSubstr("invalid device name"));
}

TEST(QualifiedName, KeepsCaseAndKnowsNoLimitOfLength) {
  const std::string vendor = "V" + std::string(5000, 'x');
  ExpectParts(vendor + "/Class=DEV", vendor, "Class", "DEV");
  EXPECT_LT(ErrorOf(std::string(100000, '*') + "/c=a").size(), 1000u);
}

}  // namespace
}  // namespace devmgr::cdi
