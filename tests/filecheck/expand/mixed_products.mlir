// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Two kinds of bytes are multiplied as f32 where the result is narrower.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf8E4M3FN, [@m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf8E5M2, [@k, @n]>) -> tensor<?x?xf16, [@m, @n]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?x?xf8E4M3FN, [@m, @k]>)
// CHECK-SAME: -> tensor<?x?xf32, [@m, @k]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[B]] : (tensor<?x?xf8E5M2, [@k, @n]>)
// CHECK-SAME: -> tensor<?x?xf32, [@k, @n]>
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[CONVERT]], %[[CONVERT2]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[CONVERT3:\w+]] = stablehlo.convert %[[DOT]] : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf16, [@m, @n]>
// CHECK-NEXT: return %[[CONVERT3]] : tensor<?x?xf16, [@m, @n]>
func.func @main(%x: tensor<?x?xf8E4M3FN, [@m, @k]>, %y: tensor<?x?xf8E5M2, [@k, @n]>) -> tensor<?x?xf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xf8E4M3FN, [@m, @k]>, tensor<?x?xf8E5M2, [@k, @n]>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}

// -----

// In the result's type where it is wide.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xbf16, [@m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf64, [@m, @n]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?x?xbf16, [@m, @k]>) -> tensor<?x?xf64, [@m, @k]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[B]] : (tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf64, [@k, @n]>
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[CONVERT]], %[[CONVERT2]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf64, [@m, @k]>, tensor<?x?xf64, [@k, @n]>) -> tensor<?x?xf64, [@m, @n]>
// CHECK-NEXT: return %[[DOT]] : tensor<?x?xf64, [@m, @n]>
func.func @main(%x: tensor<?x?xbf16, [@m, @k]>, %y: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf64> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xbf16, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}

// -----

// Signed and unsigned integers meet in the result's type.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xi8, [@m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xui8, [@k, @n]>) -> tensor<?x?xi32, [@m, @n]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?x?xi8, [@m, @k]>) -> tensor<?x?xi32, [@m, @k]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[B]] : (tensor<?x?xui8, [@k, @n]>) -> tensor<?x?xi32, [@k, @n]>
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[CONVERT]], %[[CONVERT2]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xi32, [@m, @k]>, tensor<?x?xi32, [@k, @n]>) -> tensor<?x?xi32, [@m, @n]>
// CHECK-NEXT: return %[[DOT]] : tensor<?x?xi32, [@m, @n]>
func.func @main(%x: tensor<?x?xi8, [@m, @k]>, %y: tensor<?x?xui8, [@k, @n]>) -> tensor<?x?xi32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xi8, [@m, @k]>, tensor<?x?xui8, [@k, @n]>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}

// -----

// Operands of one type are left alone, whatever the result's is.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf16, [@m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf16, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf16, [@m, @k]>, tensor<?x?xf16, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[DOT]] : tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf16, [@m, @k]>, %y: tensor<?x?xf16, [@k, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xf16, [@m, @k]>, tensor<?x?xf16, [@k, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Integers and floats do not meet.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.dot_general at line {{[0-9]+}}: operands of different kinds (i8 and f32) have no lowering
func.func @main(%x: tensor<?x?xi8, [@m, @k]>, %y: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xi8, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Floats of 8 bits become f32, of which products are sums.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf8E5M2, [@m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf8E5M2, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]> {
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[A]] : (tensor<?x?xf8E5M2, [@m, @k]>)
// CHECK-SAME: -> tensor<?x?xf32, [@m, @k]>
// CHECK-NEXT: %[[CONVERT2:\w+]] = stablehlo.convert %[[B]] : (tensor<?x?xf8E5M2, [@k, @n]>)
// CHECK-SAME: -> tensor<?x?xf32, [@k, @n]>
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[CONVERT]], %[[CONVERT2]], contracting_dims = [1] x [0]
// CHECK-NEXT: return %[[DOT]] : tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf8E5M2, [@m, @k]>, %y: tensor<?x?xf8E5M2, [@k, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xf8E5M2, [@m, @k]>, tensor<?x?xf8E5M2, [@k, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
