// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// The compiler's op for the positions of true elements is made by the import, and no program has it.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: disc.nonzero at line {{[0-9]+}}: this op has no lowering
func.func @main(%x: tensor<?xi1, [@n]>, %y: tensor<?xf32, [@c]>) -> tensor<?xi32, [@c]> {
  %0 = "disc.nonzero"(%x) : (tensor<?xi1, [@n]>) -> tensor<?xi32, [@c]>
  return %0 : tensor<?xi32, [@c]>
}

// -----

// The call that a traced function has for it means nothing without an argument that stands for the size.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call at line {{[0-9]+}}: its size depends on the elements of a tensor
func.func @main(%x: tensor<?xi1, [@n]>, %y: tensor<?xi32, [@c]>) -> tensor<?xi32> {
  %0 = stablehlo.custom_call @shlo_disc.nonzero(%x, %y) : (tensor<?xi1, [@n]>, tensor<?xi32, [@c]>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

// -----

// Nor does it inside of a branch.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call at line {{[0-9]+}}: its size depends on the elements of a tensor
func.func @main(%p: tensor<i1>, %x: tensor<?xi1, [@n]>, %y: tensor<?xi32, [@c]>) -> tensor<?xi32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.custom_call @shlo_disc.nonzero(%x, %y) : (tensor<?xi1, [@n]>, tensor<?xi32, [@c]>) -> tensor<?xi32>
    stablehlo.return %1 : tensor<?xi32>
  }, {
    %1 = stablehlo.abs %y : (tensor<?xi32, [@c]>) -> tensor<?xi32>
    stablehlo.return %1 : tensor<?xi32>
  }) : (tensor<i1>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
