// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// A broadcast puts its sizes before those of the operand.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.broadcast {{.*}} -> tensor<2x3x?xf32, [2, 3, @n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<2x3x?xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2, 3] : (tensor<?xf32, [@n]>) -> tensor<2x3x?xf32>
  return %0 : tensor<2x3x?xf32>
}

// -----

// A static result says what the operand's size is.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<5xf32>) -> tensor<2x5xf32>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<2x5xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2] : (tensor<?xf32, [@n]>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

// A result of fewer elements than the operand always has.
// CHECK: error: stablehlo.broadcast at line {{[0-9]+}}: the sizes n + 6 and 5 must be equal and never are
func.func @main(%x: tensor<?xf32, [@"n + 6"]>) -> tensor<2x5xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2] : (tensor<?xf32, [@"n + 6"]>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

// A product of two matrices: the inner sizes are one size.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "k"
// CHECK: func.func @main(%{{.*}}: tensor<?x?xf32, [@m, @j]>, %{{.*}}: tensor<?x?xf32, [@j, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK: stablehlo.dot {{.*}} -> tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?x?xf32, [@j, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@j, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A matrix times a vector.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.dot {{.*}} -> tensor<?xf32, [@m]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?xf32, [@k]>) -> tensor<?xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<?x?xf32, [@m, @k]>, tensor<?xf32, [@k]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Inner sizes that never agree.
// CHECK: error: stablehlo.dot at line {{[0-9]+}}: the sizes k and k + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@k]>, %y: tensor<?xf32, [@"k + 1"]>) -> tensor<f32> {
  %0 = stablehlo.dot %x, %y : (tensor<?xf32, [@k]>, tensor<?xf32, [@"k + 1"]>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A letter of an einsum is one size wherever it stands: here the batch and the contracted axis.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x7xf32, [@c, @m, 7]>, %{{.*}}: tensor<7x?x?xf32, [7, @c, @n]>) -> tensor<?x?x?xf32, [@n, @c, @m]>
func.func @main(%x: tensor<?x?x?xf32, [@c, @m, @k]>, %y: tensor<7x?x?xf32, [7, @d, @n]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.einsum %x, %y, config = "bij,jbk->kbi"
    : (tensor<?x?x?xf32, [@c, @m, @k]>, tensor<7x?x?xf32, [7, @d, @n]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// A letter of an einsum whose sizes never agree.
// CHECK: error: stablehlo.einsum at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@m, @n]>, %y: tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32> {
  %0 = stablehlo.einsum %x, %y, config = "ij,j->i" : (tensor<?x?xf32, [@m, @n]>, tensor<?xf32, [@"n + 1"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// An einsum of which a letter stands twice in an operand is not compiled.
// CHECK: error: 1 unsupported construct(s):
// CHECK: stablehlo.einsum {{.*}} an einsum of 'ii,j->j' has no lowering
func.func @main(%x: tensor<?x?xf32, [@n, @n]>, %y: tensor<?xf32, [@m]>) -> tensor<?xf32> {
  %0 = stablehlo.einsum %x, %y, config = "ii,j->j" : (tensor<?x?xf32, [@n, @n]>, tensor<?xf32, [@m]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// An einsum of one operand orders its axes anew and sums over the letters that the result lacks.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.unary_einsum{{.*}} -> tensor<?x?xf32, [@p, @m]>
func.func @main(%x: tensor<?x?x?xf32, [@m, @n, @p]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ijk->ki"}> : (tensor<?x?x?xf32, [@m, @n, @p]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// The sizes that a static result of an einsum states are those of the letters.
// CHECK: error: stablehlo.unary_einsum at line {{[0-9]+}}: the sizes 2*n and 5 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@"2*n", @m]>) -> tensor<5xf32> {
  %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ij->i"}> : (tensor<?x?xf32, [@"2*n", @m]>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// An axis of the operand gives way to the sizes of the index, without those that go by the batch.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: sym_name = "d"
// CHECK: func.func @main(%{{.*}}: tensor<?x?x?xf32, [@c, @m, @n]>, %{{.*}}: tensor<?x?x3xi32, [@c, @k, 3]>) -> tensor<?x?x3x?xf32, [@c, @k, 3, @n]>
// CHECK: "stablehlo.torch_index_select"{{.*}} -> tensor<?x?x3x?xf32, [@c, @k, 3, @n]>
func.func @main(%x: tensor<?x?x?xf32, [@c, @m, @n]>, %i: tensor<?x?x3xi32, [@d, @k, 3]>) -> tensor<?x?x3x?xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 1 : i64, batch_dims = 1 : i64}>
    : (tensor<?x?x?xf32, [@c, @m, @n]>, tensor<?x?x3xi32, [@d, @k, 3]>) -> tensor<?x?x3x?xf32>
  return %0 : tensor<?x?x3x?xf32>
}

// -----

// Batch sizes of an operand and its indices that never agree.
// CHECK: error: stablehlo.torch_index_select at line {{[0-9]+}}: the sizes b and b + 1 must be equal and never are
func.func @main(%x: tensor<?x?xf32, [@b, @n]>, %i: tensor<?x?xi32, [@"b + 1", @k]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 1 : i64, batch_dims = 1 : i64}>
    : (tensor<?x?xf32, [@b, @n]>, tensor<?x?xi32, [@"b + 1", @k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
