// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// Rows by their indices: as many as there are indices, and as wide as the slices.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "stablehlo.gather"{{.*}} -> tensor<?x?x7xf32, [@k, @l, 7]>
func.func @main(%x: tensor<?x7xf32, [@n, 7]>, %i: tensor<?x?x1xi32, [@k, @l, 1]>) -> tensor<?x?x7xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 7>}>
    : (tensor<?x7xf32, [@n, 7]>, tensor<?x?x1xi32, [@k, @l, 1]>) -> tensor<?x?x7xf32>
  return %0 : tensor<?x?x7xf32>
}

// -----

// Slices lie in the operand, along both of its axes, and an index has a number for each axis that it names.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "k"}
// CHECK-NEXT: "disc.symbol"() {min = 3 : i64, name = "m"}
// CHECK-NEXT: "disc.symbol"() {min = 2 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.gather at line {{[0-9]+}}", relation = "n >= 2"}
// CHECK: "disc.constraint"() {origin = "stablehlo.gather at line {{[0-9]+}}", relation = "m >= 3"}
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@n, @m]>, %{{.*}}: tensor<?x2xi32, [@k, 2]>) -> tensor<2x?x3xf32, [2, @k, 3]>
func.func @main(%x: tensor<?x?xf32, [@n, @m]>, %i: tensor<?x?xi32, [@k, @l]>) -> tensor<2x?x3xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2],
    start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}>
    : (tensor<?x?xf32, [@n, @m]>, tensor<?x?xi32, [@k, @l]>) -> tensor<2x?x3xf32>
  return %0 : tensor<2x?x3xf32>
}

// -----

// A batch axis of the operand is one of the indices, and stands where the latter does.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x7xf32, [@c, @n, 7]>, %{{.*}}: tensor<?x?x1xi32, [@k, @c, 1]>) -> tensor<?x?x7xf32, [@k, @c, 7]>
func.func @main(%x: tensor<?x?x7xf32, [@c, @n, 7]>, %i: tensor<?x?x1xi32, [@k, @d, 1]>) -> tensor<?x?x7xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1],
    operand_batching_dims = [0], start_indices_batching_dims = [1], start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1, 7>}>
    : (tensor<?x?x7xf32, [@c, @n, 7]>, tensor<?x?x1xi32, [@k, @d, 1]>) -> tensor<?x?x7xf32>
  return %0 : tensor<?x?x7xf32>
}

// -----

// As many single elements as there are need no element to be there: an operand without any is not refused.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "n"}
// CHECK-NOT: disc.constraint
// CHECK: "stablehlo.gather"{{.*}} -> tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>, %i: tensor<?x1xi32, [@n, 1]>) -> tensor<?xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
    : (tensor<?xf32, [@n]>, tensor<?x1xi32, [@n, 1]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// More single elements than that need one.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {min = 1 : i64, name = "n"}
// CHECK: "disc.constraint"() {origin = "stablehlo.gather at line {{[0-9]+}}", relation = "n >= 1"}
func.func @main(%x: tensor<?xf32, [@n]>, %i: tensor<?x1xi32, [@k, 1]>) -> tensor<?xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
    : (tensor<?xf32, [@n]>, tensor<?x1xi32, [@k, 1]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Batch sizes of the operand and the indices that never agree.
// CHECK: error: stablehlo.gather at line {{[0-9]+}}: the sizes b and b + 1 must be equal and never are
func.func @main(%x: tensor<?x4xf32, [@b, 4]>, %i: tensor<?x?x1xi32, [@"b + 1", @k, 1]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
    operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>}>
    : (tensor<?x4xf32, [@b, 4]>, tensor<?x?x1xi32, [@"b + 1", @k, 1]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// An index that never has a number for each axis that it names.
// CHECK: error: stablehlo.gather at line {{[0-9]+}}: the sizes 2*l and 1 must be equal and never are
func.func @main(%x: tensor<4xf32>, %i: tensor<?x?xi32, [@k, @"2*l"]>) -> tensor<?xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
    : (tensor<4xf32>, tensor<?x?xi32, [@k, @"2*l"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// The sizes of slices are the elements of the third operand; a whole axis always fits.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.dynamic_gather at line {{[0-9]+}}", relation = "n >= s"}
// CHECK-NOT: disc.constraint
// CHECK: "stablehlo.dynamic_gather"{{.*}} -> tensor<?x?x?xf32, [@k, @s, @m]>
func.func @main(%x: tensor<?x?xf32, [@n, @m]>, %i: tensor<?x1xi32, [@k, 1]>, %y: tensor<?xf32, [@s]>) -> tensor<?x?x?xf32> {
  %shape = "disc.shape"() {dims = [@s, @m]} : () -> tensor<2xi64>
  %0 = "stablehlo.dynamic_gather"(%x, %i, %shape) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
    start_index_map = [0], index_vector_dim = 1>}>
    : (tensor<?x?xf32, [@n, @m]>, tensor<?x1xi32, [@k, 1]>, tensor<2xi64>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Slices that never fit.
// CHECK: error: stablehlo.dynamic_gather at line {{[0-9]+}}: n >= n + 1 must hold and never does
func.func @main(%x: tensor<?xf32, [@n]>, %i: tensor<?x1xi32, [@k, 1]>) -> tensor<?x?xf32> {
  %shape = "disc.shape"() {dims = [@"n + 1"]} : () -> tensor<1xi64>
  %0 = "stablehlo.dynamic_gather"(%x, %i, %shape) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    start_index_map = [0], index_vector_dim = 1>}>
    : (tensor<?xf32, [@n]>, tensor<?x1xi32, [@k, 1]>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A scatter keeps the operand's shape; there is an update for each index, and its window fits.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "j"
// CHECK: "disc.constraint"() {origin = "stablehlo.scatter at line {{[0-9]+}}", relation = "m >= w"}
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@n, @m]>, %{{.*}}: tensor<?x1xi32, [@k, 1]>, %{{.*}}: tensor<?x?xf32, [@k, @w]>) -> tensor<?x?xf32, [@n, @m]>
// CHECK: "stablehlo.scatter"
func.func @main(%x: tensor<?x?xf32, [@n, @m]>, %i: tensor<?x?xi32, [@k, @j]>, %u: tensor<?x?xf32, [@l, @w]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<?x?xf32, [@n, @m]>, tensor<?x?xi32, [@k, @j]>, tensor<?x?xf32, [@l, @w]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// All operands of a scatter have one shape, and all updates too.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, [@[[N:[a-z]+]]]>, %{{.*}}: tensor<?xi32, [@[[N]]]>, %{{.*}}: tensor<?x1xi32, [@[[K:[a-z]+]], 1]>, %{{.*}}: tensor<?xf32, [@[[K]]]>, %{{.*}}: tensor<?xi32, [@[[K]]]>)
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xi32, [@m]>, %i: tensor<?x1xi32, [@k, 1]>, %u: tensor<?xf32, [@k]>, %v: tensor<?xi32, [@l]>)
    -> (tensor<?xf32>, tensor<?xi32>) {
  %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    stablehlo.return %c, %d : tensor<f32>, tensor<i32>
  }) : (tensor<?xf32, [@n]>, tensor<?xi32, [@m]>, tensor<?x1xi32, [@k, 1]>, tensor<?xf32, [@k]>, tensor<?xi32, [@l]>)
    -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// A batch axis of the operand is one of the indices and one of the updates.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@b, @n]>, %{{.*}}: tensor<?x?x1xi32, [@b, @k, 1]>, %{{.*}}: tensor<?x?xf32, [@b, @k]>)
func.func @main(%x: tensor<?x?xf32, [@d, @n]>, %i: tensor<?x?x1xi32, [@c, @k, 1]>, %u: tensor<?x?xf32, [@b, @k]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1],
    input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1],
    index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<?x?xf32, [@d, @n]>, tensor<?x?x1xi32, [@c, @k, 1]>, tensor<?x?xf32, [@b, @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// More updates than indices.
// CHECK: error: stablehlo.scatter at line {{[0-9]+}}: the sizes k + 1 and k must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %i: tensor<?x1xi32, [@k, 1]>, %u: tensor<?xf32, [@"k + 1"]>) -> tensor<?xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<?xf32, [@n]>, tensor<?x1xi32, [@k, 1]>, tensor<?xf32, [@"k + 1"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A window of updates that is always wider than the operand.
// CHECK: error: stablehlo.scatter at line {{[0-9]+}}: m >= m + 2 must hold and never does
func.func @main(%x: tensor<?x?xf32, [@n, @m]>, %i: tensor<?x1xi32, [@k, 1]>, %u: tensor<?x?xf32, [@k, @"m + 2"]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<?x?xf32, [@n, @m]>, tensor<?x1xi32, [@k, 1]>, tensor<?x?xf32, [@k, @"m + 2"]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
