// RUN: opt --pass-pipeline='annotate,simplify,fuse-groups,reserve-partials' --target=cuda:sm_90 --split-input-file %s | filecheck %s

// A sum down columns: one result more, whose axis 0 is the parts.
func.func @main(%x: tensor<?x16xf32>) -> tensor<16xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [0] : (tensor<?x16xf32>, tensor<f32>) -> tensor<16xf32>
  return %sum : tensor<16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[CALL:.*]]:2 = call @[[SUM:.*]](%arg0) : {{.*}} -> (tensor<16xf32>, tensor<?x16xf32, [@"min(264, floordiv({{.*}}, 64))*min(1, floordiv(min(264, floordiv({{.*}}, 64)), 2))", 16]>)
// CHECK: return %[[CALL]]#0
// CHECK: func.func private @[[SUM]]({{.*}} attributes {disc.fusion = #disc.fusion<"reduce", {by_columns, partials = 1 : i64}>}

// -----
// Rows of bf16, whose sums are held in f32 between the parts, and their largest elements.
func.func @main(%x: tensor<?x?xbf16>) -> (tensor<?xbf16>, tensor<?xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %least = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xbf16>, tensor<bf16>) -> tensor<?xbf16>
  %most = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<?x?xbf16>, tensor<bf16>) -> tensor<?xbf16>
  return %sum, %most : tensor<?xbf16>, tensor<?xbf16>
}
// CHECK-LABEL: func.func @main
// CHECK: call {{.*}} -> (tensor<?xbf16, {{.*}}>, tensor<?xbf16, {{.*}}>, tensor<?x?xf32, {{.*}}>, tensor<?x?xf32, {{.*}}>)
// CHECK: #disc.fusion<"row_reduce", {collapsed, columns = 1 : i64, partials = 2 : i64}>

// -----
// Not long enough.
func.func @main(%x: tensor<?x8191xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x8191xf32>, tensor<f32>) -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: partials

// -----
// Blocks enough: 133 tiles of 32 columns.
func.func @main(%x: tensor<?x4225xf32>) -> tensor<4225xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [0] : (tensor<?x4225xf32>, tensor<f32>) -> tensor<4225xf32>
  return %sum : tensor<4225xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: partials

// -----
// The sum needs the largest element: two walks.
func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %most = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %r = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %c = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %r1 = stablehlo.reshape %r : (tensor<i32>) -> tensor<1xi32>
  %c1 = stablehlo.reshape %c : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %r1, %c1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %wide = stablehlo.dynamic_broadcast_in_dim %most, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %less = stablehlo.subtract %x, %wide : tensor<?x?xf32>
  %sum = stablehlo.reduce(%less init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %sum : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: #disc.fusion<"row_reduce"
// CHECK-NOT: partials

// -----
// A result has all elements of a row.
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %double = stablehlo.add %x, %x : tensor<?x?xf32>
  %sum = stablehlo.reduce(%double init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %double, %sum : tensor<?x?xf32>, tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: #disc.fusion<"row_reduce"
// CHECK-NOT: partials

// -----
// A product of few tiles and a large depth: the sums of each tile, for each part of the depth.
func.func @main(%x: tensor<4x?xf16, [4, @k]>, %w: tensor<?x100xf16, [@k, 100]>) -> tensor<4x100xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x?xf16, [4, @k]>, tensor<?x100xf16, [@k, 100]>) -> tensor<4x100xf32>
  return %y : tensor<4x100xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[CALL:.*]]:2 = call @dot_0({{.*}} -> (tensor<4x100xf32>, tensor<?x8192xf32, [@"min(64, min(264, floordiv(k, 256))*min(1, floordiv(min(264, floordiv(k, 256)), 2)))", 8192]>)
// CHECK: return %[[CALL]]#0
// CHECK: func.func private @dot_0({{.*}} #disc.fusion<"dot", {partials = 1 : i64

// -----
// The first three of long lines: three elements of each operand, for each part of a line.
func.func @main(%x: tensor<2x?xf32, [2, @n]>) -> tensor<2x3xf32> {
  %s = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<2x?xf32, [2, @n]>) -> tensor<2x?xf32, [2, @n]>
  %y = stablehlo.slice %s [0:2, 0:3] : (tensor<2x?xf32, [2, @n]>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[CALL:.*]]:2 = call @top_k_0({{.*}} -> (tensor<2x3xf32>, tensor<?x2x3xf32, [@"min(132, floordiv(n, 4096))*min(1, floordiv(min(132, floordiv(n, 4096)), 2))", 2, 3]>)
// CHECK: return %[[CALL]]#0
// CHECK: func.func private @top_k_0({{.*}} #disc.fusion<"top_k", {partials = 1 : i64

// -----
// A sort of long lines has its scratch memory already: it has parts, a power of two for each line at most.
func.func @main(%x: tensor<2x?xf32, [2, @n]>) -> tensor<2x?xf32, [2, @n]> {
  %s = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<2x?xf32, [2, @n]>) -> tensor<2x?xf32, [2, @n]>
  return %s : tensor<2x?xf32, [2, @n]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[CALL:.*]]:2 = call @sort_0({{.*}} -> (tensor<2x?xf32, [2, @n]>, tensor<2x?xf32, [2, @n]>)
// CHECK: return %[[CALL]]#0
// CHECK: func.func private @sort_0({{.*}} #disc.fusion<"sort", {parts = @"min(128, floordiv(n, 4096))*min(1, floordiv(min(128, floordiv(n, 4096)), 2))"}>

// -----
// One of many lines has one block.
func.func @main(%x: tensor<129x?xf32, [129, @n]>) -> tensor<129x?xf32, [129, @n]> {
  %s = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<129x?xf32, [129, @n]>) -> tensor<129x?xf32, [129, @n]>
  return %s : tensor<129x?xf32, [129, @n]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: parts
